"""Whether a record still tells of today's source: its hashes are computed anew, from files, importing nothing."""

from __future__ import annotations

from gradspec.report import Report, Source
from gradspec.source import fingerprint, package_root


def changed_sources(report: Report) -> frozenset[str]:
    """Return the names, as "spec NAME" and "law NAME", of which the source has changed since the record was made."""
    return frozenset(name for name, source in report.sources.items() if not is_current(source))


def is_current(source: Source) -> bool:
    """Whether the files that a measurement stands on are still those that were measured."""
    root = package_root(source.package) if source.package else None
    if source.package and root is None:
        return False
    try:
        return fingerprint(source.files, root) == source.hash
    except (SyntaxError, UnicodeDecodeError, OSError):
        return False  # a file that cannot be parsed is not the one that was measured
