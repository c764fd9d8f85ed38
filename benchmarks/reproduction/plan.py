"""What is computed: each experiment is a list of trials, a method on a setting with a seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from latentmetric.estimators.euclidean import Euclidean
from latentmetric.estimators.hrsgd import HRSGD
from latentmetric.estimators.lmnn import LMNN
from latentmetric.estimators.mapml import MaPML
from latentmetric.estimators.oasis import OASIS

GRID = tuple(10.0**exponent for exponent in range(-3, 4))
"""Factors of a parameter's base value that are searched, as in the paper."""
MOST_FURTHER = 3
"""How many factors beyond an end of the grid are tried while the error falls towards it."""

METRIC_REG, AGGRESSIVENESS, LEARNING_RATE = 1.7, 0.001, 0.01
"""The base values of MaPML, OASIS and HR-SGD. They are fixed, and do not follow the defaults of the
estimators, so that stored results keep their meaning."""
LMNN_FIXED: dict[str, Any] = {"target_neighbors": 3, "tol": 1e-4, "max_impostors": 30}
"""What LMNN is run with, whatever its defaults are."""

RATIOS = (0.05, 0.10, 0.15, 0.20, 0.25)
NOISES = (50, 100, 150, 200, 250)
"""Standard deviations of the noise on training images, out of 255."""

LARGE_SET = "imagenet"
SUBSET = "imagenet200"
"""Features of real images of 200 of ImageNet's classes, with the paper's τ for ImageNet."""
QUICK_ROWS = 10_000
QUICK_NOISES = NOISES[2:]
QUICK_FEATURES = 64
"""Principal components of a quick run."""

NCA_ROWS = 2_000
LMNN_FEATURES = 164
"""Principal components for LMNN, as its authors chose for MNIST."""
LMNN_ITERATIONS, LMNN_NOISE_ITERATIONS = 200, 60
"""At most; fewer with noise, because rows have more impostors then."""
LMNN_SEARCH_ITERATIONS, LMNN_SEARCH_ROWS = 50, 2_000
SEARCH_ROWS, SEARCH_ROWS_PER_CLASS = 10_000, 100
"""Training rows that a search fits on, the larger of the two."""


@dataclass(frozen=True)
class Setting:
    """The data a method is fitted on."""

    dataset: str
    noise: int = 0
    n_rows: int | None = None
    """Largest number of training rows; None takes all."""
    n_features: int | None = None
    """Principal components kept; None keeps the features."""

    @property
    def name(self) -> str:
        """For file names and tables."""
        parts = [self.dataset]
        parts += [f"noise{self.noise}"] if self.noise else []
        parts += [f"rows{self.n_rows}"] if self.n_rows else []
        parts += [f"pca{self.n_features}"] if self.n_features else []
        return "-".join(parts)


@dataclass(frozen=True)
class Method:
    """How to make an estimator from the one parameter that is searched and a seed."""

    make: Callable[[float, int], Any]
    searched: bool = True
    """Whether the parameter has an effect."""
    random: bool = True
    """Whether it is run with several seeds."""
    max_rows: int | None = None
    max_features: int | None = None
    search_rows: int = SEARCH_ROWS
    searched_as: str | None = None
    """The method whose search this one shares."""
    try_out: Callable[[float], Any] | None = None
    """A cheaper estimator to fit in the search."""
    beyond_grid: bool = True
    """Whether factors beyond the ends of the grid mean something else than those at its ends."""


@dataclass(frozen=True)
class Trial:
    """A method on a setting with a seed; tables show means over the seeds."""

    setting: Setting
    method: str
    seed: int

    @property
    def name(self) -> str:
        """The name of its result file."""
        return f"{self.setting.name}--{self.method}--{self.seed}"


def mapml_name(ratio: float) -> str:
    """The paper's name, with τ in percent."""
    return f"MaPML_{round(100 * ratio)}"


def _mapml(ratio: float) -> Method:
    return Method(
        lambda value, seed: MaPML.as_published(
            ratio, metric_reg=METRIC_REG * value, random_state=seed
        ),
        searched_as=mapml_name(0.10),
    )


def _hrsgd(update: str) -> Callable[[float, int], HRSGD]:
    return lambda value, seed: HRSGD(
        learning_rate=LEARNING_RATE * value, update=update, random_state=seed
    )


def _lmnn(value: float, max_iter: int) -> LMNN:
    return LMNN(push=value / (1 + value), max_iter=max_iter, **LMNN_FIXED)


def _prototypes(ratio: float) -> Method:
    return Method(
        lambda value, seed: MaPML.as_published(ratio, max_iter=0, random_state=seed), searched=False
    )


def _pca(value: float, seed: int) -> Any:
    share = {-3: 0.5, -2: 0.7, -1: 0.8, 0: 0.9, 1: 0.95, 2: 0.98, 3: 0.995}[_exponent(value)]
    return make_pipeline(PCA(share, svd_solver="full"), KNeighborsClassifier(3))


def _exponent(value: float) -> int:
    return GRID.index(value) - 3


EUCLID = Method(lambda value, seed: Euclidean(), searched=False, random=False)
REDUCED_EUCLID = f"Euclid, {LMNN_FEATURES} components"
"""What LMNN and HR-SGD begin with."""

METHODS: dict[str, Method] = {
    "Euclid": EUCLID,
    REDUCED_EUCLID: replace(EUCLID, max_features=LMNN_FEATURES),
    "LMNN": Method(
        lambda value, seed: _lmnn(value, LMNN_ITERATIONS),
        random=False,
        max_features=LMNN_FEATURES,
        search_rows=LMNN_SEARCH_ROWS,
        try_out=lambda value: _lmnn(value, LMNN_SEARCH_ITERATIONS),
    ),
    "OASIS": Method(
        lambda value, seed: OASIS(
            aggressiveness=AGGRESSIVENESS * value, psd=True, random_state=seed
        )
    ),
    "HR-SGD": Method(_hrsgd("damped"), max_features=LMNN_FEATURES),
    "HR-SGD, unbiased": Method(_hrsgd("unbiased"), max_features=LMNN_FEATURES),
    "HR-SGD, all features": Method(_hrsgd("damped"), random=False, searched_as="HR-SGD"),
    **{mapml_name(ratio): _mapml(ratio) for ratio in RATIOS},
    "MaPML_10, refined": Method(lambda value, seed: MaPML(0.10, random_state=seed), searched=False),
    "MaPML_5, refined": Method(lambda value, seed: MaPML(0.05, random_state=seed), searched=False),
    "k-means prototypes": _prototypes(0.10),
    "k-means prototypes, 5 %": _prototypes(0.05),
    "PCA + k-NN": Method(_pca, random=False, beyond_grid=False),
    "LDA + k-NN": Method(
        lambda value, seed: make_pipeline(
            LinearDiscriminantAnalysis(solver="eigen", shrinkage=min(1.0, max(1e-4, 0.1 * value))),
            KNeighborsClassifier(3),
        ),
        random=False,
        beyond_grid=False,
    ),
    "NCA": Method(
        lambda value, seed: make_pipeline(
            NeighborhoodComponentsAnalysis(max_iter=50, random_state=seed), KNeighborsClassifier(3)
        ),
        searched=False,
        max_rows=NCA_ROWS,
        max_features=LMNN_FEATURES,
    ),
    "logistic regression": Method(
        lambda value, seed: make_pipeline(
            StandardScaler(), LogisticRegression(C=0.1 * value, max_iter=200)
        ),
        random=False,
    ),
}
PAPER_METHODS = ("Euclid", "OASIS", "HR-SGD", "LMNN", "MaPML_10")
ALTERNATIVES = (
    REDUCED_EUCLID,
    "HR-SGD, unbiased",
    "MaPML_10, refined",
    "k-means prototypes",
    "PCA + k-NN",
    "LDA + k-NN",
    "NCA",
    "logistic regression",
)


CUTS = (
    f"LMNN and HR-SGD get {LMNN_FEATURES} principal components, as LMNN's authors chose.",
    f"LMNN has one trial (it is not random) of at most {LMNN_ITERATIONS} iterations, with noise "
    f"{LMNN_NOISE_ITERATIONS}; its parameter is searched on {LMNN_SEARCH_ROWS:,} rows (or "
    f"{SEARCH_ROWS_PER_CLASS} per class) with {LMNN_SEARCH_ITERATIONS} iterations.",
    f"NCA gets {NCA_ROWS:,} rows and {LMNN_FEATURES} principal components; nothing is searched.",
    f"Other searches fit on {SEARCH_ROWS:,} rows or {SEARCH_ROWS_PER_CLASS} per class. MaPML is "
    "searched once, as MaPML_10, by the mean error with latent and with original references.",
    f"On {LARGE_SET} every method has one trial, and HR-SGD one of its two readings.",
    f"On {SUBSET}, with a 26th of ImageNet's rows, OASIS and HR-SGD get 10⁵ triplets and MaPML 10⁴ "
    "steps for each metric, as on the other sets; the paper's ten times as many are for all rows.",
)
"""Where less was computed than in the paper, for the report."""

LARGE_METHODS = ("Euclid", "OASIS", "HR-SGD", "MaPML_5", "k-means prototypes, 5 %")
"""On the large set: those of the paper's Table 2, which has no LMNN either."""
LARGE_STEPS = 100_000
"""S of MaPML on the large set."""
SUBSET_METHODS = (
    "Euclid",
    REDUCED_EUCLID,
    "OASIS",
    "HR-SGD",
    "HR-SGD, unbiased",
    "MaPML_5",
    "MaPML_5, refined",
    "k-means prototypes, 5 %",
    "logistic regression",
    "LMNN",
)
"""On features of 200 of ImageNet's classes."""


def trials_of(experiments: Iterable[str], n_trials: int, quick: bool) -> list[Trial]:
    """All trials: the first one of every method and setting, then the second, and so on.

    Settings without noise come first, so that an interrupted run has the most useful results. LMNN
    on the many features of the subset takes longest and comes last.
    """
    plans = [pair for name in experiments for pair in _pairs(name, quick)]
    plans.sort(key=_urgency)
    trials = [
        Trial(setting, method, seed)
        for seed in range(n_trials)
        for setting, method in plans
        if seed == 0 or (METHODS[method].random and setting.dataset != LARGE_SET)
    ]
    return sorted(trials, key=lambda t: t.setting.dataset == SUBSET and t.method == "LMNN")


def _urgency(pair: tuple[Setting, str]) -> tuple[bool, bool, int]:
    """Settings without noise come first; with noise, the strongest first and the slow LMNN last."""
    setting, method = pair
    return setting.noise > 0, setting.noise > 0 and method == "LMNN", -setting.noise


def _pairs(experiment: str, quick: bool) -> list[tuple[Setting, str]]:
    setting = Setting(experiment)
    if quick:
        setting = replace(setting, n_rows=QUICK_ROWS, n_features=QUICK_FEATURES)
    if experiment == LARGE_SET:
        return [(setting, method) for method in LARGE_METHODS]
    if experiment == SUBSET:
        return [(setting, method) for method in SUBSET_METHODS]
    pairs = [(setting, method) for method in (*PAPER_METHODS, *ALTERNATIVES)]
    if experiment == "mnist":
        pairs += [(setting, "HR-SGD, all features")]
        pairs += [(setting, mapml_name(ratio)) for ratio in RATIOS if ratio != 0.10]
        pairs += [
            (replace(setting, noise=noise), method)
            for noise in (QUICK_NOISES if quick else NOISES)
            for method in PAPER_METHODS
        ]
    return pairs
