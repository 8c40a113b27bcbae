"""A seal on a record: a hash of all that it holds, so that a number which somebody edits by hand is noticed.

It proves nothing about who measured; it says that the file is as the measurement wrote it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

KEY = "seal"


def sealed(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with its seal, to be written as JSON."""
    return {**record, KEY: _hash(record)}


def is_intact(record: Mapping[str, Any]) -> bool:
    """Whether a record is as it was sealed; one without a seal says nothing, and is."""
    return KEY not in record or record[KEY] == _hash(record)


def _hash(record: Mapping[str, Any]) -> str:
    # Through JSON once, so that a tuple and the list that a reader gets are one thing.
    plain = json.loads(json.dumps({key: value for key, value in record.items() if key != KEY}))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]
