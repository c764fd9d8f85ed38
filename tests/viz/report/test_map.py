import numpy as np
from page_reader import Page

from latentmetric import MaPML
from latentmetric.viz import write_report
from latentmetric.viz.report.map import GRID


def test_an_outlier_does_not_squeeze_the_map(blobs, tmp_path):
    X, y = blobs
    model = MaPML(max_iter=1, n_steps=200, random_state=0).fit(X[:160], y[:160])
    X = X.copy()
    X[170] += 1e5
    page = Page.read(write_report(model, X[160:], y[160:], tmp_path / "page.html"))
    view = page.data["map"]["views"]["projection"]
    assert max(view["wide"], view["high"]) == GRID
    across = np.array(view["x"])
    inside = (across >= 0) & (across <= view["wide"])
    assert not inside.all()
    assert np.ptp(across[inside]) > GRID / 3
