import re

import pytest

from latentmetric.viz.report.bars import Bar, bar_chart
from latentmetric.viz.report.charts import WIDTH


def test_bars_have_one_scale_and_stay_inside_with_their_whiskers():
    drawn = bar_chart("t", "d", [Bar("a", 0.1, "10 %", 0.02), Bar("b", 0.05, "5 %", 0.01)])
    long, short = (float(width) for width in re.findall(r'width="([\d.]+)" height="9"', drawn))
    assert long == pytest.approx(2 * short, abs=0.02)
    ends = [float(x) for x in re.findall(r"H([\d.]+)M", drawn)]
    assert max(ends) <= WIDTH


def test_a_long_name_leaves_room_for_the_value_and_is_escaped():
    drawn = bar_chart("t", "d", [Bar("<b>" + "x" * 200, 1.0, "1,234,567")])
    assert "<b>" not in drawn
    (name,) = re.findall(r'class="bar-name">([^<]+)<', drawn)
    assert "…" in name
    assert len(name) < 60


def test_long_names_stay_different():
    names = [f"{'x' * 90}{middle}{'y' * 90}" for middle in "abc"]
    drawn = bar_chart("t", "d", [Bar(name, 1.0, "100 %") for name in names])
    assert len(set(re.findall(r'class="bar-name">([^<]+)<', drawn))) == 3


def test_no_errors_at_all_are_drawn():
    assert 'width="0"' in bar_chart("t", "d", [Bar("a", 0.0, "0 %")])
