import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from latentmetric.viz.report.charts import (
    HEIGHT,
    WIDTH,
    Bar,
    bar_chart,
    line_chart,
    nice_ticks,
)
from latentmetric.viz.report.page import _templates
from latentmetric.viz.summaries import Curve


def render(macro, *arguments):
    return getattr(_templates().get_template("charts.html").module, macro)(*arguments)


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_ticks_cover_the_range_evenly(low, span):
    ticks = nice_ticks(low, low + span, 4)
    step = ticks[1] - ticks[0]
    assert ticks[0] <= low + 1e-6 * step
    assert ticks[-1] >= low + span - 1e-6 * step
    assert 2 <= len(ticks) <= 7


@given(st.lists(st.floats(1e-6, 1e12), min_size=2, max_size=20), st.booleans())
@example([0.0078125, 2e11], True)
def test_a_curve_stays_inside_its_chart_and_keeps_its_order(values, logarithmic):
    curve = Curve(list(range(len(values))), values)
    notes = {"marked": (1, "m"), "level": (1.0, "l")}
    chart = line_chart(curve, "t", "x", logarithmic=logarithmic, **notes)
    points = chart["points"]
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)
    assert chart["marked"] == points[1]
    for (_, y), (_, other), value, next_value in zip(
        points, points[1:], values, values[1:], strict=False
    ):
        assert (other - y) * (next_value - value) <= 0, "higher values are drawn higher"


def test_bars_have_one_scale_and_stay_inside_with_their_whiskers():
    chart = bar_chart("t", [Bar("a", 0.1, "10 %", 0.02), Bar("b", 0.05, "5 %"), Bar("c", 0, "0 %")])
    drawn = render("bars", chart)
    assert re.findall(r'width="([\d.]+)" height="9"', drawn) == ["293.33", "146.67", "0"]
    (end,) = re.findall(r"H([\d.]+)M", drawn)
    assert float(end) == WIDTH - 4
    assert "t: a 10 %, b 5 %, c 0 %" in drawn


def test_groups_of_few_rows_are_pale_and_stand_where_they_should():
    groups = [(share, share, count) for share, count in ((0.5, 1), (0.7, 30), (0.9, 500))]
    drawn = render("calibration", {"title": "t", "description": "d"}, groups, 15)
    opacities = [float(value) for value in re.findall(r'class="fill" opacity="([\d.]+)"', drawn)]
    assert opacities == sorted(opacities)
    assert opacities[0] < 0.15 < 0.4 < opacities[-1]
    dots = re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', drawn)
    for x, y in dots:  # right as often as promised: on the diagonal
        assert (float(x) - 52) / 296 == pytest.approx((206 - float(y)) / 160, abs=1e-3)
