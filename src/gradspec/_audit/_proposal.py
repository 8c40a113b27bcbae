"""A spec as Python text, written from what an audit measured, for the author to complete and paste."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from gradspec._audit._case_text import case_text, why_inexact
from gradspec._audit._imports import Imported, constant_of, import_lines, imported, name_of, operator_import
from gradspec._audit._roles import has_names, parameters_text, passed_text, taken_by
from gradspec._audit._supports_text import supports_text
from gradspec._finding import SINGLE
from gradspec.spec import Accuracy, Case, FunctionSpec, OperatorSpec
from gradspec.spec._maker import Maker
from gradspec.spec._schema import named

if TYPE_CHECKING:
    from gradspec._audit._known_forms import Guess
    from gradspec.report import Report

#: What a text calls otherwise than what it imports.
_TAKEN = (
    "torch",
    "Accuracy",
    "cases",
    "make",
    "tensors",
    "Case",
    "Effects",
    "FunctionSpec",
    "Supports",
    "read_case",
    "stand_in",
)
#: How far numbers that float32 rounds may be off, of the largest element: 32 roundings.
_SINGLE = "4e-6"
#: The tensors of a result that holds them in a dict or beside something else.
_TENSORS = """

def tensors(*args, **kwargs):
    found = tree_leaves({call}(*args, **kwargs))
    return tuple(leaf for leaf in found if isinstance(leaf, torch.Tensor))
"""


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """The data that a proposed spec is written from."""

    #: What the audit ran on: without a reference the function is its own primal and surrogate.
    spec: FunctionSpec
    #: What was audited, as it was given.
    function: Any
    #: The verdicts.
    report: Report
    #: The import path of the function, `package.module:Name`; that of its definition without one.
    path: str = ""
    #: The primal and the surrogate with their import paths, where they are given.
    references: Mapping[str, tuple[Callable[..., Any], str]] = field(default_factory=dict)
    #: The calls as their author wrote them, by the name of the case, and the seed of their tensors.
    written: Mapping[str, str]
    seed: int = 0
    #: The dtype that took the place of the one of the calls.
    dtype: torch.dtype | None = None
    #: Whether it returns its tensors in a dict, in nested lists or beside something else.
    nested: bool = False
    #: The arguments that no caller gives: parameters and buffers of a module.
    state: frozenset[str] = frozenset()
    #: The arguments of which a call gets a copy, since it writes to them.
    written_to: tuple[str, ...] = ()
    #: The cases that a spec needs beside the calls.
    unshown: tuple[str, ...] = ()
    #: What else its author has to write.
    todos: tuple[str, ...] = ()

    @property
    def constant(self) -> str:
        """The name of the spec: `ROUND_STE`."""
        return constant_of(self.spec.name)

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """The calls."""
        return tuple(self.spec.cases(Maker(0, "cpu")))

    @cached_property
    def target(self) -> Imported:
        """The function in its module: `RoundSTE`, `Outer.inner`."""
        thing, given = self.spec.autograd_function or self.function, self.spec.name
        name = given if thing is self.function and given.isidentifier() else name_of(thing, "function")
        return imported(self.path, thing, name, self._taken)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The parts that are a TODO in the text."""
        return tuple(dict.fromkeys((*self.todos, *(one.todo for one in self._things if one.todo), *self.inexact)))

    @property
    def scope(self) -> dict[str, Any]:
        """The names that the text can use without an import."""
        things = {"": self.spec.autograd_function or self.function, **{r: x for r, (x, _) in self.references.items()}}
        named = {"": self.target, **self._named_references} if not self.operator else self._named_references
        return {one.name: things[role] for role, one in named.items() if one.todo}

    @property
    def inexact(self) -> tuple[str, ...]:
        """The parts of the cases that are left to write."""
        return tuple(
            f"write `{name}` of case {case.name!r}, which is {why}"
            for case in self.cases
            if case.name not in self.written
            for name, value in self.spec.named(case).items()
            if name not in self.state and (why := why_inexact(value))
        )

    @property
    def operator(self) -> str:
        """The name under which an operator is registered; empty for anything else."""
        return named(self.spec.overload) if isinstance(self.spec, OperatorSpec) else ""

    @cached_property
    def _named_references(self) -> dict[str, Imported]:
        taken = self._taken if self.operator else (*self._taken, self.target.name.partition(".")[0])
        found: dict[str, Imported] = {}
        for role, (thing, path) in self.references.items():
            same = next((one for one in found if self.references[one][0] is thing), role)
            found[role] = imported(path, thing, name_of(thing, same), taken)
        return found

    @property
    def _things(self) -> list[Imported]:
        return [*([] if self.operator else [self.target]), *self._named_references.values()]

    def text(self, forms: Guess) -> str:
        """Return the text of a spec that promises what was measured; `forms` is what `guessed` returned."""
        spec, kind = self.spec, type(self.spec).__name__
        calls = [case_text(case, self.written, seed=self.seed, dtype=self.dtype) for case in self.cases]
        supports, effects = supports_text(self.report), spec.effects.view_of
        is_wrapped = self.nested or bool(self.written_to)
        roles = [
            *self._role("primal", forms[0], "what forward computes, in plain torch"),
            *self._backward(forms[1]),
        ]
        accuracy = self._accuracy
        body = f"{roles}{calls}{accuracy}"
        names = ["Accuracy" if accuracy else "", "Case" if "Case(" in body else ""]
        names += ["Effects" if effects else "", kind]
        names += ["Supports" if supports else "", "read_case" if "read_case(" in body else ""]
        names += ["stand_in" if "stand_in(" in body else ""]
        lines = [
            *(["import torch"] if self.nested or "torch." in body else []),
            *(["from torch.utils._pytree import tree_leaves"] if self.nested else []),
            f"from gradspec import {', '.join(filter(None, names))}",
            *self.imports(),
            *_TENSORS.format(call=self._call).splitlines()[: 99 if self.nested else 0],
            "",
            "",
            "def cases(make):",
            *(f"    # TODO: {why}" for why in (*self.inexact, *self.unshown)),
            *(f"    yield {call}" for call in calls),
            "",
            "",
            *(f"# TODO: {todo}" for todo in self.todos),
            f"{self.constant} = {kind}(",
            f"    name={spec.name!r},",
            f"    operator={self.operator!r}," if self.operator else f"    function={self._function},",
            *([f"    implementation={self._implementation},"] if is_wrapped and spec.implementation else []),
            *roles,
            f"    wrt={spec.wrt!r},",
            "    cases=cases,",
        ]
        lines += [f"    zero_gradient={spec.zero_gradient!r},"] if spec.zero_gradient else []
        lines += [f"    noise={spec.noise!r},  # calls are compared with the same draws"] if spec.noise else []
        lines += [f"    accuracy={accuracy}"] if accuracy else []
        lines += [f"    effects=Effects(view_of={effects!r}),"] if effects else []
        lines += [f"    supports={supports},  # as measured: None promises nothing"] if supports else []
        failures = [v for v in self.report.failures if not (v.finding.is_cut_off or v.finding.follows)]
        broken = sorted({v.law for v in failures if v.law != "surrogate"})
        if broken:
            said = "mend it, or declare a Waiver with the reason"
            lines.append(f"    # Broken: {', '.join(broken)} (`gradspec explain`): {said}.")
        return "\n".join([*lines, ")", ""])

    @property
    def _accuracy(self) -> str:
        """Its accuracy, as it was given, or of what computes in float32 next to a reference in float64."""
        if self.spec.accuracy != Accuracy():
            said = {one.name: getattr(self.spec.accuracy, one.name) for one in fields(Accuracy)}
            return f"Accuracy({', '.join(f'{name}={value!r}' for name, value in said.items() if value)}),"
        is_single = "primal" in self.references and any(v.finding.details.get(SINGLE) for v in self.report.verdicts)
        return f"Accuracy(rtol={_SINGLE}),  # given float64, it rounds to float32" if is_single else ""

    @property
    def _taken(self) -> tuple[str, ...]:
        return (*_TAKEN, self.constant, *self.spec.parameters)

    @property
    def _call(self) -> str:
        is_class = self.spec.autograd_function is not None and not self._is_apply
        return f"{self.target.name}.apply" if is_class else self.target.name

    @property
    def _is_apply(self) -> bool:
        """Whether what is imported is the `apply` of a Function: `scale = Scale.apply`."""
        return bool(self.path) and self.spec.autograd_function is not None and not isinstance(self.function, type)

    @property
    def _implementation(self) -> str:
        return f"{self.target.name}.__self__" if self._is_apply else self.target.name

    @property
    def _function(self) -> str:
        if self.nested:
            return "tensors"
        return self._handing_on if self.written_to else self._call

    @property
    def _handing_on(self) -> str:
        """A lambda that calls it, with copies of what it writes to."""
        signature = inspect.signature(self.spec.primal)
        called, copied = ("tensors", ()) if self.nested else (self._call, self.written_to)
        return f"lambda {parameters_text(signature)}: {called}({passed_text(signature, copied)})"

    def imports(self) -> list[str]:
        """Return the lines that import what the text is of."""
        registers = operator_import(self.operator, self.path, self.spec.modules) if self.operator else ""
        return [*([registers] if registers else []), *import_lines(self._things)]

    def _backward(self, form: tuple[str, str] | None) -> list[str]:
        if "gradient" in self.references:
            return [f"    gradient={self._named_references['gradient'].name},"]
        return self._role("surrogate", form, "the map whose derivative backward applies")

    def _role(self, role: str, form: tuple[str, str] | None, todo: str) -> list[str]:
        signature = inspect.signature(self.spec.primal)
        names, given = parameters_text(signature), passed_text(signature)
        if role in self.references:
            thing, _ = self.references[role]
            if role == "surrogate" and self.references.get("primal", (None, ""))[0] is thing:
                return []  # left out it is the primal
            call = f"{self._named_references[role].name}{'.apply' if isinstance(thing, type) else ''}"
            given = passed_text(taken_by(thing, signature))
            return [f"    {role}={call if has_names(thing, signature) else f'lambda {names}: {call}({given})'},"]
        if form is not None:
            return [f"    {role}=lambda {names}: {form[0]},  # {form[1]}"]
        if self.operator:
            return [f"    {role}=stand_in(OperatorSpec.called({self.operator!r})),  # TODO: {todo}"]
        return [f"    {role}=stand_in({self._handing_on}),  # TODO: {todo}"]
