"""Whether a record still tells of today's source: its hashes are computed anew, from files, importing nothing.

That takes a second for a hundred sources, so an incremental build remembers what the files of each looked like.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from pathlib import Path

from gradspec.report import Report, Source
from gradspec.source import fingerprint, package_root


def changed_sources(report: Report, seen: MutableMapping[str, str]) -> frozenset[str]:
    """Return the names, as "spec NAME" and "law NAME", of which the source has changed since the record was made.

    Args:
        report: the record.
        seen: by the hash of a source, what its files looked like when they were found to have it; filled in here.
    """
    return frozenset(name for name, source in report.sources.items() if not is_current(source, seen))


def is_current(source: Source, seen: MutableMapping[str, str] | None = None) -> bool:
    """Whether the files that a measurement stands on are still those that were measured."""
    seen = {} if seen is None else seen
    root = package_root(source.package) if source.package else None
    if source.package and root is None:
        return False
    try:
        looks = _looks(source.files, root)
        if seen.get(source.hash) == looks:
            return True
        if fingerprint(source.files, root) != source.hash:
            return False
    except (SyntaxError, UnicodeDecodeError, OSError):
        return False  # a file that cannot be parsed is not the one that was measured
    seen[source.hash] = looks
    return True


def _looks(files: Iterable[str], root: Path | None) -> str:
    """Return what files look like from outside: Sphinx, too, takes one of the same time for the same."""
    return " ".join(f"{name} {_look(root / name if root else Path(name))}" for name in files)


def _look(file: Path) -> str:
    if not file.is_file():
        return "is missing"
    stat = file.stat()
    return f"{stat.st_mtime_ns} {stat.st_size}"
