"""The paper's claims, each checked against the results: held, did not hold, or not computed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reproduction.plan import LARGE_SET, NOISES, RATIOS, REDUCED_EUCLID, SUBSET, mapml_name

CONVERGED = 0.05
"""The objective has converged when its last rounds vary by less than this share of the fall."""


class Results:
    """Means over trials, by setting and method."""

    def __init__(self, trials: Iterable[dict[str, Any]]) -> None:
        self._trials: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for trial in trials:
            self._trials[trial["setting"], trial["method"]].append(trial)

    def settings(self, dataset: str) -> list[str]:
        """The settings of a data set, noise-free first."""
        return sorted({setting for setting, _ in self._trials if setting.split("-")[0] == dataset})

    def trials(self, setting: str, method: str) -> list[dict[str, Any]]:
        """Results of a method; ``MaPML_10-O`` is ``MaPML_10`` with original references."""
        return self._trials.get((setting, method.removesuffix("-O")), [])

    def values(self, setting: str, method: str, key: str = "error") -> list[float]:
        """One number for each trial."""
        if key == "error" and method.endswith("-O"):
            key = "error_original"
        return [trial[key] for trial in self.trials(setting, method)]

    def at_an_end(self) -> list[str]:
        """Searches whose best value is the least or the largest that was tried."""
        found = set()
        for (setting, method), trials in self._trials.items():
            searched = trials[0]["parameter"]
            tried = [float(value) for value in searched["validation_errors"]]
            if tried and searched["value"] in (min(tried), max(tried)):
                found.add(f"{method} on {setting} ({searched['value']:g})")
        return sorted(found)

    def mean(self, setting: str, method: str, key: str = "error") -> float:
        """The mean over trials, NaN if there are none."""
        values = self.values(setting, method, key)
        return float(np.mean(values)) if values else float("nan")


@dataclass(frozen=True)
class Verdict:
    """A claim and the numbers that decide it."""

    claim: str
    figures: str
    held: bool | None
    """None if a number is missing."""

    @property
    def word(self) -> str:
        """The verdict as the report shows it."""
        return {True: "held", False: "did not hold", None: "not computed"}[self.held]


def check_claims(results: Results) -> list[Verdict]:
    """All claims, in the order of the paper."""
    return [check(results) for check in CHECKS]


def _plain(results: Results, dataset: str) -> str:
    return next((s for s in results.settings(dataset) if "noise" not in s), dataset)


def _noisy(results: Results, noise: int) -> str:
    name = f"noise{noise}"
    return next((s for s in results.settings("mnist") if name in s.split("-")), f"mnist-{name}")


def _errors(results: Results, setting: str, methods: Iterable[str]) -> tuple[dict[str, float], str]:
    found = {method: results.mean(setting, method) for method in methods}
    parts = [f"{name} {error:.2f} %" for name, error in found.items() if not np.isnan(error)]
    return found, ", ".join(parts) or "nothing computed"


def _verdict(claim: str, figures: str, needed: Iterable[float], held: bool) -> Verdict:
    return Verdict(claim, figures, None if np.isnan(list(needed)).any() else bool(held))


def _active_beats_random(results: Results) -> Verdict:
    methods = ("LMNN", "MaPML_10-O", "MaPML_10", "OASIS", "HR-SGD")
    e, figures = _errors(results, _plain(results, "mnist"), methods)
    held = max(e["LMNN"], e["MaPML_10-O"], e["MaPML_10"]) < min(e["OASIS"], e["HR-SGD"])
    claim = "1. On MNIST metrics from active triplets beat metrics from random ones"
    return _verdict(claim, figures, e.values(), held)


def _near_lmnn(results: Results) -> Verdict:
    e, figures = _errors(results, _plain(results, "mnist"), ("MaPML_10-O", "LMNN"))
    held = abs(e["MaPML_10-O"] - e["LMNN"]) <= 0.2 or e["MaPML_10-O"] < e["LMNN"]
    claim = "2. On MNIST MaPML_10-O is within 0.2 points of LMNN, or better"
    return _verdict(claim, figures, e.values(), held)


def _falls_with_ratio(results: Results) -> Verdict:
    setting = _plain(results, "mnist")
    names = [mapml_name(ratio) for ratio in RATIOS]
    e, figures = _errors(results, setting, ("Euclid", *names, *(f"{name}-O" for name in names)))
    curve = [e[name] for name in names]
    beaten = all(error < e["Euclid"] for name, error in e.items() if name != "Euclid")
    slope = np.polyfit(RATIOS, curve, 1)[0] if not np.isnan(curve).any() else 0.0
    claim = "3. MaPML and MaPML-O beat Euclid, and MaPML's error falls as the ratio grows"
    return _verdict(claim, figures, e.values(), beaten and slope < 0 and curve[-1] < curve[0])


def _withstands_noise(results: Results) -> Verdict:
    methods = ("Euclid", "OASIS", "HR-SGD", "LMNN", "MaPML_10-O", "MaPML_10")
    held, figures, needed = True, [], []
    for noise in (noise for noise in NOISES if noise >= 150):
        e, text = _errors(results, _noisy(results, noise), methods)
        figures.append(f"σ = {noise}: {text}")
        needed += list(e.values())
        held &= e["MaPML_10"] == min(e.values())
        clean = {name: results.mean(_plain(results, "mnist"), name) for name in methods}
        losses = {name: e[name] - clean[name] for name in methods if name != "Euclid"}
        held &= losses["LMNN"] == max(losses.values())
    claim = "4. From noise 150/255 on MaPML has the lowest error, and LMNN loses most"
    return _verdict(claim, "; ".join(figures), needed, held)


def _is_cheap(results: Results) -> Verdict:
    setting = _plain(results, "mnist")
    methods = ("LMNN", "HR-SGD, all features", "MaPML_10", "OASIS")
    seconds = {name: results.mean(setting, name, "fit_cpu_seconds") for name in methods}
    figures = ", ".join(f"{name} {value:.1f} s" for name, value in seconds.items())
    held = (
        seconds["MaPML_10"] < seconds["LMNN"] / 3
        and seconds["MaPML_10"] < 3 * seconds["HR-SGD, all features"]
        and seconds["OASIS"] == min(seconds.values())
    )
    claim = "5. MaPML's training is far cheaper than LMNN's, like HR-SGD's; OASIS is the cheapest"
    return _verdict(claim, figures, seconds.values(), held)


def _converges(results: Results) -> Verdict:
    trials = results.trials(_plain(results, "mnist"), "MaPML_10")
    claim = "6. The objective converges within 10 rounds"
    if not trials:
        return Verdict(claim, "", None)
    curves = np.array([trial["objectives"] for trial in trials])
    fall = curves[:, 0] - curves[:, -1]
    wobble = np.ptp(curves[:, -3:], axis=1)
    figures = f"from {curves[:, 0].mean():.3g} to {curves[:, -1].mean():.3g}"
    if np.all(fall > 0):
        share = 100 * (wobble / fall).mean()
        figures += f"; the last three rounds differ by {share:.1f} % of the fall"
    return Verdict(claim, figures, bool(np.all(fall > 0) and np.all(wobble < CONVERGED * fall)))


def _best_on_cifar(results: Results) -> Verdict:
    methods = ("Euclid", "OASIS", "HR-SGD", "LMNN", "MaPML_10-O", "MaPML_10")
    held, figures, needed = True, [], []
    for dataset in ("cifar10", "cifar100"):
        e, text = _errors(results, _plain(results, dataset), methods)
        figures.append(f"{dataset}: {text}")
        needed += list(e.values())
        held &= e["MaPML_10"] == min(e.values())
        held &= e["MaPML_10-O"] < min(e["OASIS"], e["HR-SGD"])
    claim = "7. On both CIFARs MaPML_10 is best and MaPML_10-O beats OASIS and HR-SGD"
    return _verdict(claim, "; ".join(figures), needed, held)


def _only_mapml_on_imagenet(results: Results) -> Verdict:
    """On features of images, for both readings of HR-SGD, which gets fewer features: so does its
    Euclid."""
    methods = ("Euclid", "OASIS", "MaPML_5", REDUCED_EUCLID, "HR-SGD", "HR-SGD, unbiased")
    e, figures = _errors(results, _plain(results, SUBSET), methods)
    held = e["MaPML_5"] < e["Euclid"] <= e["OASIS"]
    held &= e[REDUCED_EUCLID] <= min(e["HR-SGD"], e["HR-SGD, unbiased"])
    claim = "8. On ImageNet MaPML with latents beats Euclid; OASIS and HR-SGD do not"
    return _verdict(claim, figures, e.values(), held)


def _queries_are_cheap(results: Results) -> Verdict:
    claim = "9. Queries against latents are many times cheaper than against originals"
    ratios = {}
    for dataset in ("mnist", "cifar10", "cifar100", SUBSET, LARGE_SET):
        setting = _plain(results, dataset)
        method = "MaPML_5" if dataset in (SUBSET, LARGE_SET) else "MaPML_10"
        latent = results.mean(setting, method, "query_microseconds")
        original = results.mean(setting, method, "query_original_microseconds")
        if not np.isnan(latent):
            ratios[dataset] = original / latent
    if not ratios:
        return Verdict(claim, "", None)
    figures = ", ".join(f"{dataset} {ratio:.1f} times" for dataset, ratio in ratios.items())
    return Verdict(claim, figures, min(ratios.values()) > 3)


CHECKS: tuple[Callable[[Results], Verdict], ...] = (
    _active_beats_random,
    _near_lmnn,
    _falls_with_ratio,
    _withstands_noise,
    _is_cheap,
    _converges,
    _best_on_cifar,
    _only_mapml_on_imagenet,
    _queries_are_cheap,
)
