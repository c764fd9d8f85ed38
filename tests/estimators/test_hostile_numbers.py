"""Whatever the numbers are, a fit gives a sound model or is refused before any work."""

from hostile import cases, outcome
from hypothesis import HealthCheck, given, settings


@settings(
    max_examples=40, deadline=None, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(cases())
def test_every_fit_is_sound_or_refused(case):
    assert outcome(case) in ("fitted", "refused")
