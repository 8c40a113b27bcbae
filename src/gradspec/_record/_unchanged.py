"""Whether nothing at all has changed since a record was made: told from files and versions, without torch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from gradspec._record._key import combined
from gradspec._record._modules import ALWAYS_OURS, is_installed, located, place_of, version_of

#: The groups in which packages announce specs and laws.
GROUPS = ("gradspec.specs", "gradspec.laws")


def state_of(request: Mapping[str, Any], tops: Iterable[str], files: Iterable[str] = ()) -> dict[str, Any]:
    """Return a request with the state of all that its answer can depend on.

    Args:
        request: what was asked for, as plain data.
        tops: the top-level names of the code that was verified, and of what it imports.
        files: the paths of modules outside of packages.
    """
    tops, files = sorted({*tops, *ALWAYS_OURS}), sorted(files)
    announced = sorted(
        f"{point.group} {point.value} {point.dist.version if point.dist else ''}"
        for group in GROUPS
        for point in entry_points(group=group)
    )
    return {
        **request,
        "tops": tops,
        "files": files,
        "tree": combined([_state_of_top(top) for top in tops], [_state_of_file(f) for f in files], announced),
    }


def is_unchanged(known: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    """Whether a request has the state that a record noted for it."""
    tops, files = known.get("tops"), known.get("files")
    if not _is_texts(tops) or not _is_texts(files):
        return False
    return bool(tops) and dict(known) == state_of(request, tops or (), files or ())


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _state_of_top(top: str) -> str:
    place = place_of(top)
    if place is None or (top not in ALWAYS_OURS and is_installed(place)):
        return f"{top} {version_of(top)}"
    files = sorted(place.rglob("*")) if place.is_dir() else [place.with_suffix(".py")]
    kept = [f for f in files if f.suffix != ".pyc" and f.is_file()]
    return f"{top} " + combined([(f.relative_to(place.parent).as_posix(), _hash(f)) for f in kept])


def _state_of_file(name: str) -> str:
    file = located(name)
    return f"{name} {_hash(file) if file is not None else 'is missing'}"


def _hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
