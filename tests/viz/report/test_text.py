import math
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentmetric.characters import JOINERS
from latentmetric.viz.report.limits import MAX_TEXT
from latentmetric.viz.report.text import number, shown


@given(st.text(st.characters(codec=None), max_size=300))
def test_shown_text_is_one_short_visible_line(text):
    seen = shown(text)
    assert 0 < len(seen) <= MAX_TEXT
    seen.encode()
    hidden = {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}
    assert not [c for c in seen if unicodedata.category(c) in hidden and c not in JOINERS]


def test_short_visible_text_is_shown_unchanged():
    for text in ("cat", "日本語", "عربى", "a b-c/d", "👩\u200d🚀"):
        assert shown(text) == text
    assert shown("") == "(empty)"
    assert shown("a\nb") == r"a\nb"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567, "1,234,567"),
        (1234.56, "1,235"),
        (1012345.6, "1,012,346"),
        (0.12345, "0.123"),
        (1.5e300, "1.5e+300"),
        (math.nan, "–"),
    ],
)
def test_numbers_have_about_three_digits(value, text):
    assert number(value) == text
