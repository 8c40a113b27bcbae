"""The form of a record: what it notes, without what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

#: A timing may be older than the note of these versions, and what they were then is not known.
SINCE_SCHEMA_2 = frozenset({"dependencies", "numpy", "sympy"})


def noted(record: Mapping[str, Any]) -> Set[str]:
    """Return what the provenance of a record notes, whenever it was made."""
    return record["provenance"].keys() - SINCE_SCHEMA_2
