"""Text from outside as it is shown: hidden characters as codes, long names cut but different."""

from hypothesis import given
from hypothesis import strategies as st

from latentmetric.characters import (
    JOINERS,
    distinct_names,
    in_a_sentence,
    is_hidden,
    percent,
    shortened,
    visible,
)

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


def test_names_that_look_the_same_are_numbered():
    assert distinct_names(["a", "b", "a"], 9) == ["a (#0)", "b", "a (#2)"]
    assert distinct_names(["x" * 90, "x" * 91], 9) == ["xxx…", "xxx…x"]


def test_names_that_differ_in_their_middle_are_shown_from_there():
    names = [f"{TRACT}stage {stage} of 20 stages of the disease" for stage in (8, 11, 12)]
    assert distinct_names(names, 41) == [
        "Chronic infla…8 of 20 stage…f the disease",
        "Chronic infla…11 of 20 stag…f the disease",
        "Chronic infla…12 of 20 stag…f the disease",
    ]
    assert distinct_names(reversed(names), 41) == distinct_names(names, 41)[::-1]
    assert distinct_names(names, 200) == names


@given(st.text(st.characters(codec=None)))
def test_visible_text_is_one_line_that_can_be_written(text):
    assert not any(map(is_hidden, visible(text)))
    visible(text).encode()


def test_letters_of_any_script_stay_as_they_are():
    for text in ("cat", "日本語", "عربى", f"a{JOINERS}b", "C:\\x", "[x]", "é"):
        assert visible(text) == text
    assert visible("\x1b[2J\n\u202e") == "\\x1b[2J\\n\\u202e"


def test_words_of_sentences():
    assert [in_a_sentence(list("abc")[:n]) for n in (1, 2, 3)] == ["a", "a and b", "a, b and c"]
    assert percent(0.08254) == "8.25 %"
