"""Which tree a measurement is of: what an interrupted one may go on from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

SRC = Path(__file__).resolve().parents[1]
#: What a provenance says of when it was made, and of the result, and not of what was measured.
_WHEN = ("date", "commit", "stages", "packages")


@cache
def files_key() -> str:
    """Return a hash of the bytes of all Python files of the tree: an edit of any of them is another tree."""
    found = hashlib.sha256()
    for path in sorted(SRC.rglob("*.py")):
        found.update(f"{path.relative_to(SRC)}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def is_of_this_tree(known: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    """Whether an earlier provenance is of the same files, versions, seed and profile."""
    before, now = ({key: value for key, value in one.items() if key not in _WHEN} for one in (known, facts))
    return before == now
