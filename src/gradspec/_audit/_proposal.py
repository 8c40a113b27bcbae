"""A spec as Python text, written from what an audit measured, for the author to complete and paste."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from gradspec._audit._case_text import argument_text, case_text
from gradspec.law import Status
from gradspec.laws import LAWS
from gradspec.spec import FunctionSpec, OperatorSpec, Supports
from gradspec.spec._maker import Maker
from gradspec.spec._schema import named

if TYPE_CHECKING:
    from gradspec._audit._known_forms import Guess
    from gradspec.report import Report

#: Of how many capabilities a spec may say that they are not promised, before it says which ones are.
_FEW = 4


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """What a proposed spec is written from."""

    #: What the audit ran on: the function is its own primal and surrogate.
    spec: FunctionSpec
    #: The verdicts.
    report: Report
    #: The import path of the function, `package.module:Name`; a comment asks for it without one.
    path: str = ""
    #: The calls as their author wrote them, by the name of the case, and the seed of their tensors.
    written: Mapping[str, str]
    seed: int = 0
    #: The dtype that took the place of the one of the calls.
    dtype: torch.dtype | None = None

    @property
    def constant(self) -> str:
        """The name of the spec: `ROUND_STE`."""
        return constant_of(self.spec.name)

    @property
    def target(self) -> str:
        """The name of the function in its module: `RoundSTE`, `Outer.inner`."""
        found = self.spec.autograd_function
        return self.path.rpartition(":")[2] or (found.__name__ if found else self.spec.name)

    def text(self, forms: Guess) -> str:
        """Return the text of a spec that promises what was measured; `forms` is what `guessed` returned."""
        value, gradient = forms
        spec = self.spec
        calls = [self._case(case) for case in spec.cases(Maker(0, "cpu"))]
        supports, effects = self._supports(), spec.effects.view_of
        operator, kind = self._operator(), type(spec).__name__
        names = ["Case" if "Case(" in "".join(calls) else "", "Effects" if effects else "", kind]
        names += ["Supports" if supports else "", "read_case" if "read_case(" in "".join(calls) else ""]
        names += ["stand_in" if None in forms else ""]
        roles = [
            self._lambda("primal", value, "what forward computes, in plain torch"),
            self._lambda("surrogate", gradient, "the map whose derivative backward applies"),
        ]
        lines = [
            *(["import torch"] if "torch." in f"{roles}{calls}" else []),
            f"from gradspec import {', '.join(filter(None, names))}",
            self._import(),
            "",
            "",
            "def cases(make):",
            *(f"    yield {call}" for call in calls),
            "",
            "",
            f"{self.constant} = {kind}(",
            f"    name={spec.name!r},",
            f"    operator={operator!r}," if operator else f"    function={self._function()},",
            *roles,
            f"    wrt={spec.wrt!r},",
            "    cases=cases,",
        ]
        lines += [f"    zero_gradient={spec.zero_gradient!r},"] if spec.zero_gradient else []
        lines += [f"    effects=Effects(view_of={effects!r}),"] if effects else []
        lines += [f"    supports={supports},  # as measured: None promises nothing"] if supports else []
        broken = sorted({v.law for v in self.report.violations if v.law != "surrogate" and not v.finding.is_cut_off})
        if broken:
            lines.append(f"    # Broken, which no spec can declare: {', '.join(broken)} (`gradspec explain`).")
        return "\n".join([*lines, ")", ""])

    def _operator(self) -> str:
        """Return the name under which an operator is registered; empty for anything else."""
        return named(self.spec.overload) if isinstance(self.spec, OperatorSpec) else ""

    def _function(self) -> str:
        is_class = self.spec.autograd_function is not None and not self.target.endswith(".apply")
        return f"{self.target}.apply" if is_class else self.target

    def _import(self) -> str:
        if operator := self._operator():
            return self._import_of(operator)
        module, top = self.path.rpartition(":")[0], self.target.partition(".")[0]
        if not module:
            return f"# TODO: import {self.target}"
        if module.endswith(".py"):
            # What `gradspec check` finds where the spec is in the same folder.
            return f"from {Path(module).stem} import {top}  # keep the spec beside {Path(module).name}"
        return f"from {module} import {top}"

    def _import_of(self, operator: str) -> str:
        """Return the import of the module that registers an operator: the one that was named, or else its home."""
        module = self.path.rpartition("::")[0].rpartition(":")[0]
        if module.endswith(".py"):
            return f"import {Path(module).stem}  # registers {operator}; keep the spec beside {Path(module).name}"
        homes = [name for name in self.spec.modules if name.partition(".")[0] not in ("__main__", "torch")]
        homes = [name for name in homes if not name.startswith("gradspec._")]  # of what replaces the spec
        home = module or next(iter(homes), "")
        return f"import {home}  # registers {operator}" if home else f"# TODO: import what registers {operator}"

    def _case(self, case: object) -> str:
        return case_text(case, self.written, seed=self.seed, dtype=self.dtype)  # type: ignore[arg-type]  # it is a Case

    def _lambda(self, role: str, text: str | None, todo: str) -> str:
        signature = inspect.signature(self.spec.primal)
        names = str(_with_readable_defaults(signature))[1:-1]
        if text is not None:
            return f"    {role}=lambda {names}: {text},  # agrees with every case"
        if operator := self._operator():
            return f"    {role}=stand_in(OperatorSpec.called({operator!r})),  # TODO: {todo}"
        given = [_passed(parameter) for parameter in signature.parameters.values()]
        return f"    {role}=stand_in(lambda {names}: {self._function()}({', '.join(given)})),  # TODO: {todo}"

    def _supports(self) -> str:
        """Return what was measured to work, as the text of `Supports`; nothing where that is everything."""
        found: dict[str, set[Status]] = {field.name: set() for field in fields(Supports)}
        capability = {law.name: law.capability for law in LAWS}
        for verdict in self.report.verdicts:
            if name := capability.get(verdict.law):
                found[name].add(verdict.status)
        works = [name for name, said in found.items() if Status.HOLDS in said and Status.NOT_PROMISED not in said]
        rest = [name for name in found if name not in works]
        if not rest:
            return ""
        if len(rest) <= _FEW:
            return f"Supports({', '.join(f'{name}=None' for name in rest)})"
        return f"Supports.eager({', '.join(f'{name}=True' for name in works)})"


def constant_of(name: str) -> str:
    """Return the name of a spec in its module: `ROUND_STE` for `RoundSTE`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return re.sub(r"\W+", "_", words).strip("_").upper() or "SPEC"


def _with_readable_defaults(signature: inspect.Signature) -> inspect.Signature:
    """Return a signature whose defaults appear in a text as they are made: tensors among them."""
    return signature.replace(
        parameters=[
            parameter if parameter.default is parameter.empty else parameter.replace(default=_Text(parameter.default))
            for parameter in signature.parameters.values()
        ]
    )


class _Text:
    """A value that is shown as the expression that makes it."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __repr__(self) -> str:
        return argument_text(self._value)


def _passed(parameter: inspect.Parameter) -> str:
    if parameter.kind is parameter.VAR_POSITIONAL:
        return f"*{parameter.name}"
    return f"{parameter.name}={parameter.name}" if parameter.kind is parameter.KEYWORD_ONLY else parameter.name
