"""Who killed whom, as plain data: the command writes it, a page shows it, and neither needs the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gradspec._record import RecordError, Source, from_text, read, to_text
from gradspec_lab.selftest._equivalent import EQUIVALENT

KIND = "kill matrix"
AGAIN = "make it again with `python -m gradspec_lab selftest --record`"


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What was held to the laws: a sound specimen, a diseased one, or a mutant."""

    #: "honest", "diseased" or "mutant".
    sort: str
    name: str
    #: What it is a variant of: the Function of a mutant; the kind of a specimen.
    group: str
    #: What it depends on, by its name among the sources of the matrix.
    source: str = ""
    #: The laws that noticed something; of a mutant, those of the first stage in which one did.
    killed_by: tuple[str, ...] = ()
    #: The number of that stage, or of the last one.
    stage: int = 0
    #: The laws that hold on a case of a sound specimen, and would not for a wrong result.
    held: tuple[str, ...] = ()
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
    #: What the subjects, the laws and their running depend on.
    sources: Mapping[str, Source]
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
        """Return the matrix as JSON, a line for each subject, without what is empty."""
        content = {
            "provenance": dict(self.provenance),
            "sources": {name: source.to_dict() for name, source in self.sources.items()},
            "population": dict(self.population),
            "subjects": [{k: v for k, v in asdict(subject).items() if v} for subject in self.subjects],
        }
        return to_text(KIND, content, rows="subjects")

    @classmethod
    def from_json(cls, text: str, *, where: str = "the record") -> Matrix:
        """Return the matrix that `text` holds.

        Raises:
            RecordError: not JSON, another schema version, edited since, or a field that is missing.
        """
        return _matrix(from_text(text, KIND, where=where, again=AGAIN), where)


def _matrix(data: Mapping[str, Any], where: str) -> Matrix:
    try:
        return Matrix(
            provenance=data["provenance"],
            sources={name: Source.from_dict(source) for name, source in data["sources"].items()},
            population={sort: int(count) for sort, count in data["population"].items()},
            subjects=tuple(map(_subject, data["subjects"])),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(f"{where} is no kill matrix ({type(error).__name__}: {error}): {AGAIN}") from None


def read_matrix(path: Path) -> Matrix:
    """Return the matrix that a file holds.

    Raises:
        RecordError: the file cannot be read, or does not hold a record of this version.
    """
    return _matrix(read(path, KIND, again=AGAIN), str(path))


def _subject(data: Mapping[str, Any]) -> Subject:
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
    return Subject(**fields)
