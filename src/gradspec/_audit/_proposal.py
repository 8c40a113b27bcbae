"""A spec as Python text, written from what an audit measured, for the author to complete and paste."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gradspec.laws import LAWS
from gradspec.laws.tensor.support._call import differentiable
from gradspec.spec import Case, FunctionSpec, Supports
from gradspec.spec._maker import Maker

if TYPE_CHECKING:
    from gradspec._audit._known_forms import Guess
    from gradspec.report import Report


def proposed(spec: FunctionSpec, report: Report, forms: Guess, path: str = "") -> str:
    """Return the text of a spec that promises what was measured.

    Args:
        spec: what the audit ran on: the function is its own primal and surrogate.
        report: the verdicts.
        forms: what `guessed` returned.
        path: the import path of the function, `package.module:Name`; a comment asks for it without one.
    """
    module, _, name = path.partition(":")
    name = name or (spec.autograd_function.__name__ if spec.autograd_function else spec.name)
    value, gradient = forms
    names = ", ".join(spec.parameters)
    promises = {law.name: law.capability for law in LAWS}
    raising = {promises.get(v.law) for v in report.failures if "raised" in v.finding.details}
    refused = [field.name for field in fields(Supports) if field.name in raising]
    silent = sorted({v.law for v in report.failures if promises.get(v.law) and "raised" not in v.finding.details})
    unpromised = sorted({v.law for v in report.failures if not promises.get(v.law) and "raised" in v.finding.details})
    calls = [_case_text(case) for case in spec.cases(Maker(0, "cpu"))]
    imports = ["Case", *(["Effects"] if spec.effects.view_of else []), "FunctionSpec"]
    lines = [
        *(["import torch"] if "torch." in f"{value}{gradient}{calls}" else []),
        f"from gradspec import {', '.join([*imports, *(['Supports'] if refused else [])])}",
        _import_text(module, name),
        "",
        "",
        "def cases(make):",
        *(f"    yield {call}" for call in calls),
        "",
        "",
        f"{_constant(spec.name)} = FunctionSpec(",
        f"    name={spec.name!r},",
        f"    function={name}{'.apply' if spec.autograd_function and not name.endswith('.apply') else ''},",
        _lambda("primal", names, value, "what forward computes, in plain torch"),
        _lambda("surrogate", names, gradient, "the map whose derivative backward applies"),
        f"    wrt={spec.wrt!r},",
        "    cases=cases,",
    ]
    if spec.effects.view_of:
        lines.append(f"    effects=Effects(view_of={spec.effects.view_of!r}),")
    if refused:
        promised = ", ".join(f"{law}=False" for law in refused)
        lines.append(f"    supports=Supports({promised}),  # refused with an error, as measured; a fix is better")
    if silent:
        lines.append(f"    # Silently wrong, which no spec can declare: {', '.join(silent)} (`gradspec explain`).")
    if unpromised:
        lines.append(
            f"    # Raised, which `supports` cannot declare: {', '.join(unpromised)}. Fix it, or waive the law."
        )
    return "\n".join([*lines, ")", ""])


def _import_text(module: str, name: str) -> str:
    if not module:
        return f"# TODO: import {name}"
    if module.endswith(".py"):
        # What `gradspec check` finds where the spec stands in the same folder.
        return f"from {Path(module).stem} import {name.partition('.')[0]}  # keep the spec beside {Path(module).name}"
    return f"from {module} import {name.partition('.')[0]}"


def _lambda(role: str, names: str, text: str | None, todo: str) -> str:
    if text is None:
        return f"    {role}=lambda {names}: ...,  # TODO: {todo}"
    return f"    {role}=lambda {names}: {text},  # agrees with every case"


def _case_text(case: Case) -> str:
    args = [_argument_text(value) for value in case.args]
    shown = f"({', '.join(args)}{',' if len(args) == 1 else ''})"
    kwargs = ", ".join(f"{name!r}: {_argument_text(value)}" for name, value in case.kwargs.items())
    return f"Case(name={case.name!r}, args={shown}{f', kwargs={{{kwargs}}}' if kwargs else ''})"


def _argument_text(value: Any) -> str:
    if not isinstance(value, Tensor):
        return repr(value)
    dtype = "" if value.dtype == torch.float64 else f"dtype={value.dtype}"
    text = f"make({', '.join(filter(None, [*map(str, value.shape), dtype]))})"
    if differentiable(value) or value.dtype == torch.bool or not value.numel() or int(value.min()) < 0:
        return text
    return f"{text}.remainder({int(value.max()) + 1})"  # an index stays within what it points into


def _constant(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return re.sub(r"\W+", "_", words).strip("_").upper() or "SPEC"
