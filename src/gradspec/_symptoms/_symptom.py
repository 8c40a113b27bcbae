"""One row of the symptom index."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Symptom:
    """The symptom, cause and remedy of one kind of reason."""

    #: The `kind` of the `Reason`.
    kind: str
    #: What a finding shows.
    symptom: str
    #: What is wrong in the code.
    cause: str
    #: What to do.
    remedy: str
    #: The laws whose findings have this reason.
    laws: tuple[str, ...]
