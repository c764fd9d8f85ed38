import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from latentmetric.viz.report.charts import (
    BOTTOM,
    HEIGHT,
    LETTER,
    TOP,
    WIDTH,
    Line,
    bar,
    line_chart,
    nice_ticks,
    tick_texts,
)
from latentmetric.viz.summaries import Curve

VALUES = st.floats(1e-6, 1e12)


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_ticks_cover_the_range_evenly(low, span):
    ticks = nice_ticks(low, low + span, 4)
    step = ticks[1] - ticks[0]
    assert ticks[0] <= low + 1e-6 * step
    assert ticks[-1] >= low + span - 1e-6 * step
    assert 2 <= len(ticks) <= 7


@given(st.integers(0, 10**6), st.integers(0, 10**6))
@example(1, 14)
def test_ticks_of_rounds_are_whole_numbers_at_even_steps(first, span):
    ticks = nice_ticks(first, first + span, 6, whole=True)
    assert all(tick.is_integer() for tick in ticks)
    assert len({after - tick for tick, after in pairwise(ticks)}) == 1
    line = Line(Curve([first, first + span], [1.0, 2.0]), "t", "d", "x")
    written = re.findall(r'class="tick middle">([\d,]+)<', line_chart(line))
    inside = [tick for tick in ticks if first <= tick <= first + span]
    assert [int(text.replace(",", "")) for text in written] == inside


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


def test_notes_stand_above_the_plot_and_beside_each_other():
    curve = Curve(list(range(11)), [1.0] * 11)
    line = Line(
        curve, "t", "d", "x", marked=3, mark_text="kept: round 3, 1.00", divided=4.5,
        divided_text="refinement begins",
    )  # fmt: skip
    drawn = line_chart(line)
    assert re.search(rf'd="M[\d.]+ {TOP}V{HEIGHT - BOTTOM}" class="level"', drawn)
    places = re.findall(r'<text x="11" y="0" class="tick">([^<]+)</text></g>', drawn)
    assert places == ["kept: round 3, 1.00", "refinement begins"]
    starts = [float(x) for x in re.findall(r"translate\(([\d.]+) 32\)", drawn)]
    assert starts[1] - starts[0] > LETTER * len(places[0])
    assert starts[1] + LETTER * len(places[1]) < WIDTH


@pytest.mark.parametrize(
    ("ticks", "as_percent", "logarithmic", "written"),
    [
        ([0, 0.5, 1.0], False, False, ["0.0", "0.5", "1.0"]),
        ([0, 5_000, 10_000.0], False, False, ["0", "5,000", "10,000"]),
        ([0, 0.025, 0.05], True, False, ["0.0 %", "2.5 %", "5.0 %"]),
        ([0.001, 1, 1000.0], False, True, ["0.001", "1", "1,000"]),
        ([1e-6, 1e-3, 1.0], False, True, ["10⁻⁶", "10⁻³", "10⁰"]),
        ([0, 2e7, 4e7], False, False, ["0", "2·10⁷", "4·10⁷"]),
    ],
)
def test_the_numbers_of_an_axis_have_one_format(ticks, as_percent, logarithmic, written):
    found = tick_texts(ticks, as_percent, logarithmic)
    assert [text.replace("\N{NO-BREAK SPACE}", " ") for text in found] == written


def test_text_in_a_chart_is_escaped():
    assert "<b>" not in line_chart(Line(Curve([0, 1], [1.0, 2.0]), "<b>", "<b>", "<b>"))


def test_a_bar_has_the_length_of_its_share():
    assert 'width="25"' in bar(0.25)
    assert 'd="M20 5H30' in bar(0.25, 0.05)
