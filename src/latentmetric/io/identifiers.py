"""Names that say that a column identifies rows: as a feature it would tell nothing.

Only names are judged. Numbers that differ from row to row may be measurements.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from latentmetric.io.choosing import listed

WHOLE_NAMES = (
    "id", "ids", "index", "idx", "guid", "uuid", "row", "rowid", "rownr", "rownum", "rownumber",
)  # fmt: skip
"""What people call such a column, in lower case and without what stands between the words."""

LAST_WORD = re.compile(r".*[\s_.-](id|ID|Id)|.*[a-z0-9](Id|ID)")
"""A name that ends in the word id, as in patient_id and patientId, and not in acid."""


def identifies_rows(name: str) -> bool:
    """Whether the name of a column says that it identifies rows."""
    plain = name.strip()
    letters = re.sub(r"[\s_.-]", "", plain).lower()
    return letters in WHOLE_NAMES or bool(LAST_WORD.fullmatch(plain))


def doubt_about(features: Sequence[str]) -> list[str]:
    """One line if names of features say that these identify rows; none otherwise."""
    found = [name for name in features if identifies_rows(name)]
    if not found:
        return []
    first = shlex.quote(found[0])
    are = "identifies rows but is a feature"
    if len(found) > 1:
        are = "identify rows but are features"
    return [
        f"Warning: by name, {listed(list(map(repr, found)))} {are}; leave out with --ignore "
        f"{first}, or keep beside the answers with --id {first}"
    ]
