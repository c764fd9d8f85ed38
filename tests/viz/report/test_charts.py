import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from latentmetric.viz.report.charts import HEIGHT, WIDTH, Line, bar, line_chart, nice_ticks
from latentmetric.viz.summaries import Curve

VALUES = st.floats(1e-6, 1e12)


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_ticks_cover_the_range_evenly(low, span):
    ticks = nice_ticks(low, low + span, 4)
    step = ticks[1] - ticks[0]
    assert ticks[0] <= low + 1e-6 * step
    assert ticks[-1] >= low + span - 1e-6 * step
    assert 2 <= len(ticks) <= 7


def places_of(drawing):
    (path,) = re.findall(r'd="M([^"]+)" class="curve"', drawing)
    return [tuple(map(float, place.split())) for place in path.split("L")]


@given(st.lists(VALUES, min_size=2, max_size=20), st.booleans())
@example([0.0078125, 2e11], True)
def test_a_curve_stays_inside_its_chart_and_keeps_its_order(values, logarithmic):
    line = Line(
        Curve(list(range(len(values))), values), "t", "d", "x", marked=1, mark_text="m",
        level=1.0, level_text="l", logarithmic=logarithmic,
    )  # fmt: skip
    places = places_of(line_chart(line))
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in places)
    for (_, y), (_, other), value, next_value in zip(
        places, places[1:], values, values[1:], strict=False
    ):
        assert (other - y) * (next_value - value) <= 0, "higher values are drawn higher"


@pytest.mark.parametrize("values", [[0.0, 0.0], [5.0, 5.0], [-1.0, 3.0]])
def test_flat_and_negative_curves_are_drawn(values):
    assert len(places_of(line_chart(Line(Curve([0, 1], values), "t", "d", "x")))) == 2


@pytest.mark.parametrize(("divided", "side"), [(3.5, "tick"), (9.5, "tick end")])
def test_a_division_is_a_vertical_line_with_its_text_on_the_side_with_room(divided, side):
    curve = Curve(list(range(11)), [1.0] * 11)
    drawn = line_chart(Line(curve, "t", "d", "x", divided=divided, divided_text="refinement"))
    place = float(re.search(r'd="M([\d.]+) 26V186" class="level"', drawn)[1])
    assert place == pytest.approx(48 + divided / 10 * 300)
    text = re.search(r'<text x="([\d.]+)" y="30" class="([^"]+)">refinement<', drawn)
    assert (text[2], float(text[1])) == (side, place + (5 if side == "tick" else -5))


def test_text_in_a_chart_is_escaped():
    assert "<b>" not in line_chart(Line(Curve([0, 1], [1.0, 2.0]), "<b>", "<b>", "<b>"))


def test_a_bar_has_the_length_of_its_share():
    assert 'width="25"' in bar(0.25)
    assert 'd="M20 5H30' in bar(0.25, 0.05)
