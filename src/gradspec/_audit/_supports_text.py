"""Format the transforms that were measured to work as the text of `Supports`."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from gradspec.law import Status
from gradspec.laws import LAWS
from gradspec.spec import Supports

if TYPE_CHECKING:
    from gradspec.report import Report

#: Of how many capabilities a spec may say that they are not promised, before it says which ones are.
_FEW = 4


def supports_text(report: Report) -> str:
    """Return what was measured to work; nothing where that is what a spec promises that says nothing."""
    found: dict[str, set[Status]] = {field.name: set() for field in fields(Supports)}
    capability = {law.name: law.capability for law in LAWS}
    for verdict in report.verdicts:
        if name := capability.get(verdict.law):
            found[name].add(verdict.status)
    works = [name for name, said in found.items() if Status.HOLDS in said and Status.NOT_PROMISED not in said]
    rest = [name for name in found if name not in works]
    if len(rest) <= _FEW:
        return f"Supports.all({', '.join(f'{name}=None' for name in rest)})"
    # What was not measured is left as a spec says it itself.
    unlike = [
        f"{field.name}={value}"
        for field in fields(Supports)
        if found[field.name] and (value := True if field.name in works else None) != field.default
    ]
    return f"Supports({', '.join(unlike)})" if unlike else ""
