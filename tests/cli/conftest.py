"""Trial fits after a fit are left out, to save time; tests of them turn them on."""

import pytest


@pytest.fixture(autouse=True)
def _no_trial_fits(monkeypatch):
    monkeypatch.setattr("latentmetric.cli.fit.QUICK_SECONDS", -1)


@pytest.fixture
def trial_fits(monkeypatch):
    """However long the fit took."""
    monkeypatch.setattr("latentmetric.cli.fit.QUICK_SECONDS", float("inf"))
    monkeypatch.setattr("latentmetric.evaluation.rivals.STRENGTHS", (1.0,))
    monkeypatch.setattr("latentmetric.evaluation.rivals.NEIGHBORS", (1, 3))
