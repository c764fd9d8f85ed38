"""Names that are too long to be shown: what is left of them, and that they stay different."""

from hypothesis import given
from hypothesis import strategies as st

from latentmetric.characters import shortened, told_apart
from latentmetric.io.choosing import listed

TRACT = "Chronic inflammatory condition of the lower respiratory tract, "


@given(st.text(max_size=100), st.integers(1, 60))
def test_shortened_text_has_both_ends_and_a_sign(text, longest):
    seen = shortened(text, longest)
    assert len(seen) == min(len(text), longest)
    if len(text) > longest:
        begin, end = seen[: longest // 2], seen[longest // 2 + 1 :]
        assert seen == f"{begin}…{end}"
        assert text.startswith(begin)
        assert text.endswith(end)
    else:
        assert seen == text


def test_names_that_differ_at_either_end_stay_different():
    names = [f"{TRACT}{how}" for how in ("moderate", "severe")]
    names += [f"{how} {TRACT}" for how in ("moderate", "severe")]
    assert len({shortened(name, 40) for name in names}) == 4
    assert listed(names).count("…") == 4


def test_names_that_look_the_same_are_numbered():
    assert told_apart(["a", "b", "a"]) == ["a (#0)", "b", "a (#2)"]
