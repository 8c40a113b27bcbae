"""One row of the symptom index."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Symptom:
    """What one kind of reason looks like, what is behind it, and what mends it."""

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
