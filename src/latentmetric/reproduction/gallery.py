"""Fig. 5 of the paper: latent examples of MNIST, each beside five of its originals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from latentmetric.estimators.mapml import MaPML
from latentmetric.reproduction.cells import load_setting
from latentmetric.reproduction.figures import save_figure
from latentmetric.reproduction.plan import Setting
from latentmetric.viz.gallery import plot_latent_examples

NAME = "fig5-latents"
IMAGE = (28, 28)


def draw_gallery(setting: Setting, folder: str | None, out: Path) -> None:
    """Fit on the setting's rows as they are, all pixels; nothing to do if the figure is there."""
    if (out / f"{NAME}.svg").exists():
        return
    split = load_setting(replace(setting, n_features=None), folder)
    model = MaPML(0.1, random_state=0).fit(split.X_train, split.y_train)
    save_figure(plot_latent_examples(model, split.X_train, split.y_train, IMAGE), NAME, out)
