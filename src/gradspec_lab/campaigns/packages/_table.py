"""The packages of the campaign: versions, what each needs, and a program of ours that calls its functions."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

TABLES = Path(__file__).parent / "tables"


@dataclass(frozen=True, kw_only=True)
class Package:
    """One package in one version, and a program that uses it."""

    name: str
    version: str
    #: What it is for; the name of the table that it is in.
    domain: str
    #: What an audit sees: a few lines of ours.
    program: str
    #: What it imports, beside what gradspec needs, each with its version: `einops==0.8.2`.
    needs: tuple[str, ...] = ()
    #: How long the program and its audits may take, on a quiet machine.
    seconds: int = 300

    @property
    def pins(self) -> tuple[str, ...]:
        """What pip installs."""
        return (f"{self.name}=={self.version}", *self.needs)

    @cached_property
    def key(self) -> str:
        """A hash of what is run: another version or program is measured again."""
        return hashlib.sha256("\0".join((*self.pins, self.program)).encode()).hexdigest()[:16]


def packages(tables: Path = TABLES) -> list[Package]:
    """Return the packages of all tables, in the order of the tables' names.

    Raises:
        ValueError: a pin has no version, or a package is there twice.
    """
    found = [
        Package(domain=table.stem, name=name, **{**row, "needs": tuple(row.get("needs", ()))})
        for table in sorted(tables.glob("*.toml"))
        for name, row in tomllib.loads(table.read_text(encoding="utf-8")).items()
    ]
    if loose := [pin for one in found for pin in one.pins if "==" not in pin]:
        raise ValueError(f"{loose[0]!r} has no version: write NAME==VERSION")
    names = [one.name for one in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{twice[0]!r} is in the tables twice")
    return found
