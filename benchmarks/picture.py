"""Draw the picture of the README: latent examples of MNIST beside images of their clusters.

LATENTMETRIC_DATA=folder python benchmarks/picture.py
"""

from __future__ import annotations

from pathlib import Path

from data import load_benchmark

from latentmetric import MaPML
from latentmetric.viz import plot_latent_examples

PATH = Path(__file__).parent.parent / "docs" / "images" / "latent_examples.png"


def main() -> None:
    split = load_benchmark("mnist")
    model = MaPML(random_state=0).fit(split.X_train, split.y_train)
    PATH.parent.mkdir(exist_ok=True)
    plot_latent_examples(model, split.X_train, split.y_train, (28, 28)).savefig(PATH, dpi=120)
    print(PATH)


if __name__ == "__main__":
    main()
