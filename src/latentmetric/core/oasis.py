"""OASIS: a bilinear similarity learned by passive-aggressive steps, one random triplet per step.

Chechik, Sharma, Shalit and Bengio, "Large Scale Online Learning of Image Similarity Through
Ranking", JMLR 11 (2010). Time O(S·d² + S·B·d) for S steps in blocks of B; memory one d×d
matrix and a few B×d and B×B blocks.

Why blocks are exact: a step on the triplet (o, p, q) with Δ = p − q has the hinge
1 − oᵀ W Δ and moves W by τ·o Δᵀ. Inside a block W = W₀ + Σ τᵢ oᵢ Δᵢᵀ with W₀ fixed, so

    oⱼᵀ W Δⱼ = oⱼᵀ W₀ Δⱼ + Σ τᵢ (oⱼ·oᵢ)(Δᵢ·Δⱼ),

and one product with W₀ and two Gram matrices are enough for all steps of a block.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from latentmetric.core.coordinates import InnerRows
from latentmetric.core.random_triplets import first_record, steps_of
from latentmetric.core.steps import Record, Steps
from latentmetric.core.triplets import Triplets
from latentmetric.core.tuning import OASIS_STEPS_PER_BLOCK
from latentmetric.core.types import Floats, Ints


@dataclass
class State:
    """The similarity after some of the steps."""

    similarity: Floats
    record: Record = field(default_factory=first_record)
    finished: bool = False


def steps(
    rows: InnerRows, codes: Ints, n_steps: int, n_parts: int, aggressiveness: float
) -> Steps[State]:
    """OASIS on ``n_steps`` random triplets, in ``n_parts`` steps."""

    def learn(
        state: State, unit_rows: InnerRows, triplets: Triplets, generator: np.random.Generator
    ) -> tuple[Floats, int]:
        hinges = learn_similarity(state.similarity, unit_rows, triplets, aggressiveness)
        return hinges, int(np.count_nonzero(hinges > 0))

    start = State(np.eye(rows.n_features, dtype=rows.dtype))
    return steps_of(learn, start, lambda state: state.similarity, rows, codes, n_steps, n_parts)


def learn_similarity(
    similarity: Floats,
    rows: InnerRows,
    triplets: Triplets,
    aggressiveness: float,
    steps_per_block: int = OASIS_STEPS_PER_BLOCK,
) -> Floats:
    """Update ``similarity`` (W) in place, one step per triplet; return the hinge before each."""
    hinges = np.empty(len(triplets))
    for first in range(0, len(triplets), steps_per_block):
        block = triplets[first : first + steps_per_block]
        anchors = rows[block.anchors]
        differences = rows[block.targets] - rows[block.impostors]
        on_start = np.einsum("ij,ij->i", anchors @ similarity, differences, dtype=np.float64)
        products = (anchors @ anchors.T).astype(np.float64)
        products *= differences @ differences.T
        rates, hinges[first : first + len(block)] = _steps_of_a_block(
            on_start, products, aggressiveness
        )
        moved = rates > 0
        weighted = anchors[moved] * rates[moved, None].astype(rows.dtype)
        similarity += weighted.T @ differences[moved]
    return hinges


def _steps_of_a_block(
    on_start: Floats, products: Floats, aggressiveness: float
) -> tuple[Floats, Floats]:
    """The rate τ = min(C, hinge / ‖o Δᵀ‖²) and the hinge of each step, one after the other.

    A triplet whose matrix o Δᵀ is zero has the rate 0: no step would help it.
    """
    rates, hinges = np.zeros(len(on_start)), np.zeros(len(on_start))
    starts, squares = on_start.tolist(), products.diagonal().tolist()
    for j, start in enumerate(starts):
        hinge = 1 - start - float(products[j, :j] @ rates[:j])
        if hinge > 0:
            hinges[j] = hinge
            if squares[j] > 0:
                rates[j] = min(aggressiveness, hinge / squares[j])
    return rates, hinges
