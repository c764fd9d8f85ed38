"""What peers.py compares: methods and their environments, data sets, sizes, limits."""

from __future__ import annotations

from dataclasses import dataclass

SIZES = (2_000, 4_000, 8_000, 16_000, 32_000, 60_000)
TABLE_SIZE = 16_000
"""Rows of the tables and of the picture of errors: the most that all sets have."""

LIMIT_SECONDS = 600.0
LIMIT_GIGABYTES = 12.0


@dataclass(frozen=True)
class Peer:
    """A method: where it runs, and whether it is ours."""

    name: str
    environment: str = "main"
    ours: bool = False


PEERS = {
    peer.name: peer
    for peer in (
        Peer("faiss 3-NN"),
        Peer("scikit-learn 3-NN brute"),
        Peer("scikit-learn LDA"),
        Peer("scikit-learn 3-NN tree"),
        Peer("scikit-learn logistic regression"),
        Peer("pytorch-metric-learning ProxyNCA", "pytorch-metric-learning"),
        Peer("pytorch-metric-learning SoftTriple", "pytorch-metric-learning"),
        Peer("scikit-learn SVC"),
        Peer("sklvq GMLVQ", "sklvq"),
        Peer("metric-learn ITML", "metric-learn"),
        Peer("metric-learn MMC", "metric-learn"),
        Peer("scikit-learn NCA"),
        Peer("metric-learn LMNN", "metric-learn"),
        Peer("metric-learn NCA", "metric-learn"),
        Peer("MaPML", ours=True),
        Peer("MaPML as published", ours=True),
        Peer("latentmetric LMNN", ours=True),
    )
}
"""In the order of the run: the cheap ones first, ours last."""

MAIN = "main"
ENVIRONMENTS = {
    "metric-learn": (("metric-learn==0.7.0", "scikit-learn==1.5.2", "numpy==2.2.6"),),
    "sklvq": (("sklvq==0.1.2", "scikit-learn==1.5.2"),),
    "pytorch-metric-learning": (("torch==2.13.0",), ("pytorch-metric-learning==2.9.0",)),
}
"""What is installed into each, in steps. Newer versions of scikit-learn lack what metric-learn 0.7
(``force_all_finite``) and sklvq (``_validate_data``) call. ``MAIN`` is the environment of
peers.py itself."""


@dataclass(frozen=True)
class DataSet:
    """Rows of a benchmark, reduced to principal components if there is a number of them."""

    benchmark: str
    n_components: int | None = None


SETS = {
    "MNIST PCA-50": DataSet("mnist", 50),
    "letter": DataSet("letter"),
    "MNIST": DataSet("mnist"),
    "CIFAR-100 features": DataSet("cifar100"),
}
"""In the order of the run."""


def sizes_of(n_rows: int, wanted: tuple[int, ...] = SIZES) -> list[int]:
    """The sizes that a set of ``n_rows`` has; all of its rows in place of a larger one."""
    return sorted({min(size, n_rows) for size in wanted})
