import math

import pytest

from latentmetric.viz.report.text import number


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
