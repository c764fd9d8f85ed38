"""Fits take fewer steps than they would, for all tests of this folder."""

import pytest


@pytest.fixture(autouse=True)
def _short_passes(short_passes):
    pass
