"""The key of what was measured: a hash of the definitions that can change it, free of paths and module names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from gradspec._record._modules import ENVIRONMENT, version_of
from gradspec._record._normal_form import short
from gradspec._record._reach import Closure


def hash_of(closure: Closure, *, noted: Iterable[str] = ()) -> str:
    """Return the hash of what a root depends on.

    Args:
        closure: what that is.
        noted: the top-level names of others of which the version does not count.
    """
    lines = {
        f"{definition.documented_hash if definition in closure.documents else definition.hash} {resolved.links}"
        for definition, resolved in closure.definitions.items()
    }
    tops = {other.partition(".")[0] for other in closure.others} - ENVIRONMENT - set(noted)
    lines |= {f"version {version}" for top in tops if (version := version_of(top))}
    lines |= {f"data {path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in closure.data}
    return short("\n".join(sorted(lines)))


def combined(*parts: Any) -> str:
    """Return the hash of plain data."""
    return short(json.dumps(parts, sort_keys=True, default=str))
