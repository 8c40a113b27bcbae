"""Who killed whom, as plain data: the command writes it, a page shows it, and neither needs the other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gradspec.report import RecordError, Source
from gradspec.selftest._equivalent import EQUIVALENT

#: The version of the JSON form. It moves when a reader of the old form would misread the new one.
SCHEMA = 1
AGAIN = "make it again with `gradspec selftest --record`"


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
    #: The laws that must notice a diseased specimen.
    own: tuple[str, ...] = ()
    #: The laws among these that cannot be checked on the device of this run.
    not_measured: tuple[str, ...] = ()
    #: What happened to the process, where no law had the time to speak.
    crash: str = ""
    #: What torch's own checkers said on the first case, by name: "accepts", or what was raised.
    stock: Mapping[str, str] = field(default_factory=dict)

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
        return f"survived its own law {', '.join(missed)}" if missed and not self.crash else ""


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """The subjects of a run, and what the run was."""

    #: Date, commit, versions, device, seed and profile.
    provenance: Mapping[str, Any]
    #: What the measurement stands on: "laws", "specimens", "functions".
    sources: Mapping[str, Source]
    #: How many subjects of each sort there are; more than were tried, if a part was asked for or the time was up.
    population: Mapping[str, int]
    subjects: tuple[Subject, ...]
    #: What `gradspec.selftest._seeds.sweep` returned; empty if it was not asked for.
    seeds: Mapping[str, Any] = field(default_factory=dict)

    @property
    def faults(self) -> tuple[Subject, ...]:
        """The subjects that make the run fail."""
        return tuple(subject for subject in self.subjects if subject.fault)

    def of(self, sort: str) -> tuple[Subject, ...]:
        """Return the subjects of a sort."""
        return tuple(subject for subject in self.subjects if subject.sort == sort)

    def to_json(self) -> str:
        """Return the matrix as JSON, a line for each subject, without what is empty."""
        lines = [
            json.dumps({k: v for k, v in asdict(subject).items() if v}, ensure_ascii=False) for subject in self.subjects
        ]
        head = {
            "schema": SCHEMA,
            "provenance": dict(self.provenance),
            "sources": {name: asdict(source) for name, source in self.sources.items()},
            "population": dict(self.population),
            "seeds": dict(self.seeds),
        }
        text = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
        return f'{text},\n "subjects": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n"

    @classmethod
    def from_json(cls, text: str, *, where: str = "the record") -> Matrix:
        """Return the matrix that `text` holds.

        Raises:
            RecordError: not JSON, another schema version, or a field that is missing.
        """
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise RecordError(f"{where} is not JSON ({error}): {AGAIN}") from None
        found = data.get("schema") if isinstance(data, dict) else None
        if found != SCHEMA:
            raise RecordError(f"{where} has schema version {found!r}, and this gradspec reads {SCHEMA}: {AGAIN}")
        try:
            return cls(
                provenance=data["provenance"],
                sources={
                    name: Source(package=s["package"], files=tuple(s["files"]), hash=s["hash"])
                    for name, s in data["sources"].items()
                },
                population={sort: int(count) for sort, count in data["population"].items()},
                subjects=tuple(map(_subject, data["subjects"])),
                seeds=data["seeds"],
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RecordError(f"{where} is no kill matrix ({type(error).__name__}: {error}): {AGAIN}") from None


def read_matrix(path: Path) -> Matrix:
    """Return the matrix that a file holds.

    Raises:
        RecordError: the file cannot be read, or does not hold a record of this version.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path} cannot be read ({error})") from None
    return Matrix.from_json(text, where=str(path))


def _subject(data: Mapping[str, Any]) -> Subject:
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
    return Subject(**fields)
