"""Who killed whom, as plain data: the command writes it, a page shows it, and neither needs the other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from gradspec._record import RecordError, from_text, read, to_text
from gradspec_lab.selftest._equivalent import EQUIVALENT

KIND = "kill matrix"
#: What many subjects have in common: a record has each such value once.
SHARED = ("killed_by", "own", "stock")
AGAIN = "make it again with `python -m gradspec_lab selftest --record`"


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What was held to the laws: a sound specimen, a diseased one, or a mutant."""

    #: "honest", "diseased" or "mutant".
    sort: str
    name: str
    #: What it is a variant of: the Function of a mutant; the kind of a specimen.
    group: str
    #: The laws that noticed something; of a mutant, those of the first stage in which one did.
    killed_by: tuple[str, ...] = ()
    #: The number of that stage, or of the last one.
    stage: int = 0
    #: The laws that must notice a diseased specimen.
    own: tuple[str, ...] = ()
    #: What these say instead, where none of their findings has the words that it should have.
    other_words: Mapping[str, str] = field(default_factory=dict)
    #: The laws among these that cannot be checked on the device of this run.
    not_measured: tuple[str, ...] = ()
    #: What happened to the process, where no law had the time to speak.
    crash: str = ""
    #: What torch's own checkers said on the first case, by name: "accepts", or what was raised.
    stock: Mapping[str, str] = field(default_factory=dict)

    def with_laws(self, found: Subject, asked: Sequence[str], order: Sequence[str]) -> Subject:
        """Return it with what some laws say today, asked by themselves.

        Args:
            found: what became of it under them.
            asked: their names.
            order: the names of all laws.
        """
        rest = [law for law in self.killed_by if law not in asked]
        if not found.killed_by or (rest and self.stage < found.stage):
            return replace(self, killed_by=tuple(rest))
        rest = rest if self.stage == found.stage else []
        killed_by = sorted([*rest, *found.killed_by], key=list(order).index)
        return replace(self, killed_by=tuple(killed_by), stage=found.stage)

    @property
    def is_killed(self) -> bool:
        """Whether a law, or a crash, gave it away."""
        return bool(self.killed_by or self.crash)

    @property
    def proof(self) -> str:
        """Why no observation can tell a surviving mutant from the original; empty if that is not proven."""
        return "" if self.is_killed or self.sort != "mutant" else EQUIVALENT.get(self.name, "")

    @property
    def fault(self) -> str:
        """What this says against the laws, or against the specimen; empty if nothing."""
        if self.sort == "honest":
            return f"sound, and broken by {', '.join(self.killed_by)}{self.crash}" if self.is_killed else ""
        if self.sort == "mutant":
            return "" if self.is_killed or self.proof else "survived, without a proof that nothing can tell"
        missed = sorted(set(self.own) - set(self.killed_by) - set(self.not_measured))
        if missed and not self.crash:
            return f"survived its own law {', '.join(missed)}"
        return "; ".join(f"its own law {law} says something else: {said}" for law, said in self.other_words.items())


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """The subjects of a run, and what the run was."""

    #: Date, commit, versions, device, seed and profile.
    provenance: Mapping[str, Any]
    #: The laws that they were held to.
    laws: tuple[str, ...]
    #: How many subjects of each sort there are; more than were tried, if a part was asked for or the time was up.
    population: Mapping[str, int]
    subjects: tuple[Subject, ...]
    #: How many of them this run has measured; not part of the record.
    measured: int = field(default=0, compare=False)

    @property
    def faults(self) -> tuple[Subject, ...]:
        """The subjects that make the run fail."""
        return tuple(subject for subject in self.subjects if subject.fault)

    def of(self, sort: str) -> tuple[Subject, ...]:
        """Return the subjects of a sort."""
        return tuple(subject for subject in self.subjects if subject.sort == sort)

    def to_json(self) -> str:
        """Return the matrix as JSON: a line for each group, and what many subjects have in common once."""
        tables: dict[str, dict[str, int]] = {name: {} for name in SHARED}
        groups = [
            {"sort": sort, "group": group, "subjects": {subject.name: _row(subject, tables) for subject in found}}
            for (sort, group), found in groupby(self.subjects, key=lambda subject: (subject.sort, subject.group))
        ]
        content = {
            "provenance": dict(self.provenance),
            "population": dict(self.population),
            "laws": " ".join(self.laws),
            "shared": {name: [json.loads(key) for key in table] for name, table in tables.items()},
            "groups": groups,
        }
        return to_text(KIND, content, rows="groups")

    @classmethod
    def from_json(cls, text: str, *, where: str = "the record") -> Matrix:
        """Return the matrix that `text` holds.

        Raises:
            RecordError: not JSON, another schema version, edited since, or a field that is missing.
        """
        return _matrix(from_text(text, KIND, where=where, again=AGAIN), where)


def _row(subject: Subject, tables: Mapping[str, dict[str, int]]) -> list[Any]:
    """Return the numbers of what it shares with others, then what else there is to say of it, if there is."""
    said = asdict(subject)
    shared = [table.setdefault(json.dumps(_text(said.pop(name))), len(table)) for name, table in tables.items()]
    rest = {key: value for key, value in said.items() if value and key not in ("sort", "group", "name")}
    return [*shared, rest] if rest else shared


def _text(value: Any) -> Any:
    return " ".join(value) if isinstance(value, tuple) else value


def _matrix(data: Mapping[str, Any], where: str) -> Matrix:
    try:
        return Matrix(
            provenance=data["provenance"],
            laws=tuple(data["laws"].split()),
            population={sort: int(count) for sort, count in data["population"].items()},
            subjects=tuple(one for group in data["groups"] for one in _subjects(group, data["shared"])),
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(f"{where} is no kill matrix ({type(error).__name__}: {error}): {AGAIN}") from None


def read_matrix(path: Path) -> Matrix:
    """Return the matrix that a file holds.

    Raises:
        RecordError: the file cannot be read, or does not hold a record of this version.
    """
    return _matrix(read(path, KIND, again=AGAIN), str(path))


def _subjects(group: Mapping[str, Any], shared: Mapping[str, Any]) -> Iterator[Subject]:
    for name, row in group["subjects"].items():
        killed_by, own, stock = (shared[key][number] for key, number in zip(SHARED, row, strict=False))
        fields: dict[str, Any] = dict(row[len(SHARED)]) if len(row) > len(SHARED) else {}
        fields |= {"killed_by": tuple(killed_by.split()), "own": tuple(own.split()), "stock": stock}
        fields["not_measured"] = tuple(fields.get("not_measured", ()))
        yield Subject(sort=group["sort"], group=group["group"], name=name, **fields)
