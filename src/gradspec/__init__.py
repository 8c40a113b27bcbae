"""Executable specifications of custom autograd functions, the laws they must satisfy, and pages made of both."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradspec._audit import Audit, audit
    from gradspec._verify import verify
    from gradspec.law import Finding, Law, Status, Verdict
    from gradspec.module_spec import ModuleCase, ModuleSpec
    from gradspec.promise import Waiver
    from gradspec.report import Report
    from gradspec.spec import Case, Effects, FunctionSpec, Supports
    from gradspec.text_spec import TextCase, TextSpec

__all__ = [
    "Audit",
    "Case",
    "Effects",
    "Finding",
    "FunctionSpec",
    "Law",
    "ModuleCase",
    "ModuleSpec",
    "Report",
    "Status",
    "Supports",
    "TextCase",
    "TextSpec",
    "Verdict",
    "Waiver",
    "audit",
    "verify",
]
__version__ = "0.1.0"

# Lazy (PEP 562), so that `gradspec.text` and a documentation build stay free of torch.
_HOME = {
    "Audit": "_audit",
    "Case": "spec",
    "Effects": "spec",
    "Finding": "law",
    "FunctionSpec": "spec",
    "Law": "law",
    "ModuleCase": "module_spec",
    "ModuleSpec": "module_spec",
    "Report": "report",
    "Status": "law",
    "Supports": "spec",
    "TextCase": "text_spec",
    "TextSpec": "text_spec",
    "Verdict": "law",
    "Waiver": "promise",
    "audit": "_audit",
    "verify": "_verify",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gradspec' has no attribute {name!r}")
    return getattr(import_module(f"gradspec.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
