"""What notebooks show of an estimator."""

import numpy as np
import pytest
from helpers import make_blobs
from sklearn import config_context

from latentmetric import MaPML
from latentmetric.estimators.notebooks import fitted_facts
from latentmetric.registry import ESTIMATORS, estimator_class

QUICK = {"max_iter": 2, "n_steps": 100, "random_state": 0}


def test_before_the_fit_it_is_the_diagram_of_scikit_learn():
    assert "MaPML" in MaPML()._repr_html_()
    assert "fitted</caption>" not in MaPML()._repr_html_()
    assert "fitted</caption>" not in MaPML()._repr_mimebundle_()["text/html"]


def test_after_the_fit_it_tells_what_was_found(blobs):
    model = MaPML(n_latents=4, **QUICK).fit(*blobs)
    facts = fitted_facts(model)
    assert facts["classes"] == "3: 0, 1, 2"
    assert facts["references"] == "12 latent examples, which stand for 240 rows"
    start = model.history_[0]
    assert facts["start"].startswith(f"{start['start']}; tried on a sample: euclidean ")
    passes = sum("refinement" in record for record in model.history_)
    assert facts["rounds"] == (
        f"2 and {passes} passes of the refinement; number {model.best_iter_} was kept"
    )
    kept = next(record for record in model.history_ if record["round"] == model.best_iter_)
    assert facts["error"].startswith(f"{100 * kept['loo_error']:.2f} % of the training rows")
    for html in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert "MaPML, fitted</caption>" in html
        assert all(name in html for name in facts)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_is_shown(name, blobs):
    facts = fitted_facts(estimator_class(name)(random_state=0).fit(*blobs))
    assert ("rounds" in facts) == (name != "Euclidean")
    assert facts["references"].endswith(" rows")


def test_labels_are_text_that_is_cut_and_escaped():
    X, y = make_blobs(n_classes=12)
    names = np.array([f"<b>{number}\x1b{'long' * 20}" for number in range(12)])
    model = MaPML(**QUICK).fit(X, names[y])
    classes = fitted_facts(model)["classes"]
    assert classes.startswith("12: <b>0")
    assert classes.endswith(", …")
    assert len(classes) < 300
    assert "<b>0" not in model._repr_html_()
    assert "&lt;b&gt;0\\x1b" in model._repr_html_()


def test_text_is_shown_where_scikit_learn_is_set_to_it():
    with config_context(display="text"):
        assert not hasattr(MaPML(), "_repr_html_")
        assert list(MaPML()._repr_mimebundle_()) == ["text/plain"]
