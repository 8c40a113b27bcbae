"""Executable specifications of custom autograd functions, the laws they must satisfy, and pages made of both."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradspec._audit._audit import audit
    from gradspec._audit._case_syntax import read_case
    from gradspec._audit._found import Audit
    from gradspec._check import check
    from gradspec._engine._verify import verify
    from gradspec._outcome import CheckError
    from gradspec._watch._watch import watch
    from gradspec.law import Finding, Law, Status, Verdict
    from gradspec.laws import stand_in
    from gradspec.report import Report
    from gradspec.spec import (
        Accuracy,
        Case,
        Effects,
        FunctionSpec,
        ModuleCase,
        ModuleSpec,
        OperatorSpec,
        Supports,
        TextCase,
        TextSpec,
        Waiver,
    )

__all__ = [
    "Accuracy",
    "Audit",
    "Case",
    "CheckError",
    "Effects",
    "Finding",
    "FunctionSpec",
    "Law",
    "ModuleCase",
    "ModuleSpec",
    "OperatorSpec",
    "Report",
    "Status",
    "Supports",
    "TextCase",
    "TextSpec",
    "Verdict",
    "Waiver",
    "audit",
    "check",
    "read_case",
    "stand_in",
    "verify",
    "watch",
]
__version__ = "0.1.0"

# Lazy (PEP 562), so that `gradspec.text` and a documentation build stay free of torch.
_HOME = {
    "Audit": "_audit._found",
    "Case": "spec",
    "CheckError": "_outcome",
    "Accuracy": "spec",
    "Effects": "spec",
    "Finding": "law",
    "FunctionSpec": "spec",
    "Law": "law",
    "ModuleCase": "spec",
    "ModuleSpec": "spec",
    "OperatorSpec": "spec",
    "Report": "report",
    "Status": "law",
    "Supports": "spec",
    "TextCase": "spec",
    "TextSpec": "spec",
    "Verdict": "law",
    "Waiver": "spec",
    "audit": "_audit._audit",
    "check": "_check",
    "watch": "_watch._watch",
    "read_case": "_audit._case_syntax",
    "stand_in": "laws",
    "verify": "_engine._verify",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gradspec' has no attribute {name!r}")
    return getattr(import_module(f"gradspec.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
