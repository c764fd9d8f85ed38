"""Data that several tests share, and one fixed profile for hypothesis."""

from __future__ import annotations

import os

import numpy as np
import pytest
from helpers import make_blobs
from hypothesis import HealthCheck, settings

# Some virtual machines announce AMX and then end a process that uses it, as PyTorch does in half
# precision.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=15,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def short_passes(monkeypatch):
    """Passes of the refinement over few rows take fewer steps, so that tests are fast."""
    monkeypatch.setattr("latentmetric.core.refinement.FEWEST_STEPS", 30)


@pytest.fixture
def in_batches(monkeypatch):
    """Few rows are learned from as many are: nothing is chosen, and Adam refines in batches."""
    monkeypatch.setattr("latentmetric.estimators.setup.CHOOSING_ROWS", 0)


@pytest.fixture
def blobs():
    """Three overlapping classes in 6 dimensions, of which only 2 separate them."""
    return make_blobs()
