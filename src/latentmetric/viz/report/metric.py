"""What the metric is: its spectrum and, for tables, the features and directions that it weighs.

Of a pipeline, features are columns after its steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from latentmetric.core.types import Floats
from latentmetric.viz.report import limits
from latentmetric.viz.report.charts import Bar, bar_chart, line_chart
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.text import NBSP, number
from latentmetric.viz.summaries import (
    Curve,
    Spectrum,
    class_means,
    feature_effects,
    leading_directions,
    spectrum,
)


def metric_section(evidence: Evidence) -> dict[str, Any]:
    """The features that it weighs, and its eigenvalues beside the Euclidean 1."""
    if not evidence.is_metric:
        return {"spectrum": None}
    found = spectrum(evidence.model.components_)
    if not found.rank:
        return {"spectrum": found}
    return {
        "spectrum": found,
        "chart": _eigenvalue_chart(found),
        "n_stretched": int((found.values > 1.001).sum()),
        "n_shrunk": int((found.values < 0.999).sum()),
        "weights": _weights(evidence) if evidence.is_table else None,
    }


def _eigenvalue_chart(found: Spectrum) -> dict[str, Any]:
    n_drawn = min(found.rank, limits.MAX_EIGENVALUES)
    indices = np.unique(np.linspace(0, found.rank - 1, n_drawn).astype(int))
    values = found.values[indices].tolist()
    return line_chart(
        Curve((indices + 1).tolist(), values),
        "Eigenvalues of the metric",
        f"from {number(values[0])} down to {number(values[-1])}, "
        f"rank {found.rank} of {len(found.values)}",
        "direction, strongest first",
        level=1.0,
        level_text="Euclid: 1",
        logarithmic=True,
        dots=len(values) <= 40,
    )


def _weights(evidence: Evidence) -> dict[str, Any] | None:
    """A chart of the features and the leading directions; None if no feature has an effect."""
    components, columns = evidence.model.components_, evidence.columns
    deviations: Floats = evidence.originals.rows.std(axis=0, dtype=np.float64)
    effects = feature_effects(components, deviations)
    if not effects.any():
        return None
    shares = effects / effects.max()
    strongest = np.argsort(-effects, kind="stable")[: limits.MAX_FEATURES]
    bars = [
        Bar(columns[feature].name, share, f"{100 * share:.0f}{NBSP}%")
        for feature, share in zip(strongest, shares[strongest].tolist(), strict=True)
    ]
    present, means, _ = class_means(evidence.originals.rows, evidence.originals.codes)
    scaled = means / np.where(deviations > 0, deviations, 1)
    directions = []
    for share, loadings in leading_directions(components, deviations, limits.MAX_DIRECTIONS):
        along = scaled @ loadings
        largest = np.argsort(-np.abs(loadings), kind="stable")[: limits.MAX_LOADINGS]
        directions.append(
            {
                "share": share,
                "low": evidence.labels[present[along.argmin()]],
                "high": evidence.labels[present[along.argmax()]],
                "features": [
                    ("+" if loadings[feature] >= 0 else "−", columns[feature].name,
                     f"{abs(loadings[feature]):.2f}")
                    for feature in largest
                ],
            }
        )  # fmt: skip
    title = "Effect of one standard deviation, % of largest"
    return {"chart": bar_chart(title, bars), "directions": directions}
