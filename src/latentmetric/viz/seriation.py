"""An order of the classes in which those that are confused stand side by side.

Chains of classes are joined from the most confused pair to the least, each time with the two ends
nearest to that pair facing each other. Time O(p·C) for p confused pairs of C classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from latentmetric.viz.summaries import ConfusedPair


def blocks_first(pairs: Iterable[ConfusedPair], n_classes: int) -> list[int]:
    """All codes from 0 to ``n_classes`` − 1; classes that are never confused keep their order."""
    chains = {code: [code] for code in range(n_classes)}
    for (left, right), _ in _both_ways(pairs).most_common():
        first, second = chains[left], chains[right]
        if first is second:
            continue
        joined = _facing(first, left) + _facing(second, right)[::-1]
        for code in joined:
            chains[code] = joined
    groups = {min(chain): chain for chain in chains.values()}
    return [code for start in sorted(groups) for code in _from_smaller_end(groups[start])]


def _both_ways(pairs: Iterable[ConfusedPair]) -> Counter[tuple[int, int]]:
    """How often two classes were confused, whichever was the true one."""
    counts: Counter[tuple[int, int]] = Counter()
    for pair in pairs:
        counts[min(pair.true, pair.predicted), max(pair.true, pair.predicted)] += pair.count
    return counts


def _facing(chain: list[int], code: int) -> list[int]:
    """The chain with ``code`` in its second half."""
    return chain if 2 * chain.index(code) >= len(chain) - 1 else chain[::-1]


def _from_smaller_end(chain: list[int]) -> list[int]:
    return chain if chain[0] <= chain[-1] else chain[::-1]
