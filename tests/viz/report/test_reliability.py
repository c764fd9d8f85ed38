"""What the page says about probabilities, and how boldly it draws them."""

import numpy as np

from latentmetric.evaluation.calibration import Calibration
from latentmetric.viz.report.reliability import _diagram, _groups, _words


def groups(promised, kept, counts):
    return Calibration(np.array(promised), np.array(kept), np.array(counts))


def test_a_mean_that_is_right_is_not_called_right_where_groups_are_off():
    found = groups([0.5, 0.9], [0.55, 0.85], [100, 100])
    assert found.error > 0.04
    assert _words(found).startswith("The probabilities are neither too high nor too low on average")


def test_groups_of_few_rows_are_pale():
    drawn = _diagram(groups([0.5, 0.7, 0.9], [0.5, 0.7, 0.9], [1, 30, 500]))
    bars = [part for part in drawn.split("<") if part.startswith("rect")]
    opacities = [float(bar.split('opacity="')[1].split('"')[0]) for bar in bars]
    assert opacities == sorted(opacities)
    assert opacities[0] < 0.15 < 0.4 < opacities[-1]


def test_the_caption_counts_groups_that_are_left_out():
    assert _groups(groups([0.5, 0.9], [1, 1], [3, 4])).endswith(
        "13 of them have no rows and are left out."
    )
    full = np.linspace(0.03, 0.97, 15)
    assert "left out" not in _groups(groups(full, full, np.ones(15, dtype=int)))
