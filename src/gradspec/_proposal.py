"""A spec as Python text, written from what an audit measured, for the author to complete and paste."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gradspec._measure import bound
from gradspec.laws import LAWS
from gradspec.laws.tensor._call import differentiable, fresh, gradients, like, outputs, whole
from gradspec.make import Maker
from gradspec.spec import Case, FunctionSpec, Supports

if TYPE_CHECKING:
    from gradspec.report import Report

Form = tuple[str, Callable[..., Tensor]]
#: The text of a primal and of a surrogate; None where no known form agrees.
Guess = tuple[str | None, str | None]

#: What forward may compute of one tensor x; the text as it stands in a lambda.
_FORMS: tuple[Form, ...] = (
    ("{x}", lambda x: x),
    ("-{x}", lambda x: -x),
    ("{x}.relu()", torch.relu),
    ("{x}.abs()", torch.abs),
    ("{x}.sign()", torch.sign),
    ("{x}.round()", torch.round),
    ("{x}.floor()", torch.floor),
    ("{x}.ceil()", torch.ceil),
    ("({x} > 0).to({x}.dtype)", lambda x: (x > 0).to(x.dtype)),
    ("({x} >= 0).to({x}.dtype)", lambda x: (x >= 0).to(x.dtype)),
    ("({x} > 0).float()", lambda x: (x > 0).float()),
    ("({x} >= 0).float()", lambda x: (x >= 0).float()),
    ("{x}.clamp(-1, 1)", lambda x: x.clamp(-1, 1)),
    ("{x}.tanh()", torch.tanh),
    ("{x}.sigmoid()", torch.sigmoid),
    ("{x} * {x}.sigmoid()", lambda x: x * x.sigmoid()),
    ("{x}.exp()", torch.exp),
    ("{x}**2", lambda x: x**2),
    ("{x}.sum()", torch.sum),
)
#: The same with a number a beside x.
_FORMS_WITH_NUMBER: tuple[Form, ...] = (
    ("{a} * {x}", lambda x, a: a * x),
    ("-{a} * {x}", lambda x, a: -a * x),
    ("{x} / {a}", lambda x, a: x / a),
    ("({x} > {a}).to({x}.dtype)", lambda x, a: (x > a).to(x.dtype)),
    ("({a} * {x}).tanh()", lambda x, a: (a * x).tanh()),
    ("({a} * {x}).sigmoid()", lambda x, a: (a * x).sigmoid()),
    ("(torch.pi / 2 * {a} * {x}).atan() / torch.pi", lambda x, a: (torch.pi / 2 * a * x).atan() / torch.pi),
    ("{x} / (1 + {a} * {x}.abs())", lambda x, a: x / (1 + a * x.abs())),
    ("{x}.clamp(-{a}, {a})", lambda x, a: x.clamp(-abs(a), abs(a))),
)


def guessed(spec: FunctionSpec) -> Guess:
    """Return what forward computes and the map whose derivative backward applies, where a known form agrees.

    It calls the function: in a child process, if it is not known to be harmless.
    """
    forms = list(_forms(spec))
    return _matching(spec, forms, _values_agree), _matching(spec, forms, _gradients_agree)


def proposed(spec: FunctionSpec, report: Report, forms: Guess, path: str = "") -> str:
    """Return the text of a spec that promises what was measured.

    Args:
        spec: what the audit ran on: the function is its own primal and surrogate.
        report: the verdicts.
        forms: what `guessed` returned.
        path: the import path of the function, `package.module:Name`; a comment asks for it without one.
    """
    module, _, name = path.partition(":")
    name = name or (spec.implementation.__name__ if spec.implementation else spec.name)
    value, gradient = forms
    names = ", ".join(spec.parameters)
    promises = {law.name: law.promise for law in LAWS}
    raising = {promises.get(v.law) for v in report.failures if "raised" in v.finding.details}
    refused = [field.name for field in fields(Supports) if field.name in raising]
    silent = sorted({v.law for v in report.failures if promises.get(v.law) and "raised" not in v.finding.details})
    imports = ["Case", *(["Effects"] if spec.effects.view_of else []), "FunctionSpec"]
    lines = [
        *(["import torch"] if "torch." in f"{value}{gradient}" else []),
        f"from gradspec import {', '.join([*imports, *(['Supports'] if refused else [])])}",
        f"from {module} import {name.partition('.')[0]}" if module else f"# TODO: import {name}",
        "",
        "",
        "def cases(make):",
        *(f"    yield {_case_text(case)}" for case in spec.cases(Maker(0, "cpu"))),
        "",
        "",
        f"{_constant(spec.name)} = FunctionSpec(",
        f"    name={spec.name!r},",
        f"    function={name}{'.apply' if spec.implementation and not name.endswith('.apply') else ''},",
        _lambda("primal", names, value, "what forward computes, in plain torch"),
        _lambda("surrogate", names, gradient, "the map whose derivative backward applies"),
        f"    wrt={spec.wrt!r},",
        "    cases=cases,",
    ]
    if spec.implementation:
        lines.append(f"    implementation={name.removesuffix('.apply')},")
    if spec.effects.view_of:
        lines.append(f"    effects=Effects(view_of={spec.effects.view_of!r}),")
    if refused:
        promised = ", ".join(f"{law}=False" for law in refused)
        lines.append(f"    supports=Supports({promised}),  # refused with an error, as measured; a fix is better")
    if silent:
        lines.append(f"    # Silently wrong, which no spec can declare: {', '.join(silent)} (`gradspec explain`).")
    return "\n".join([*lines, ")", ""])


def _lambda(role: str, names: str, text: str | None, todo: str) -> str:
    if text is None:
        return f"    {role}=lambda {names}: ...,  # TODO: {todo}"
    return f"    {role}=lambda {names}: {text},  # agrees with every case"


def _forms(spec: FunctionSpec) -> Iterator[tuple[str, Callable[..., Tensor]]]:
    """Yield the forms that fit the arguments: text, and a function of all arguments."""
    if len(spec.wrt) != 1:
        return
    (x,) = spec.wrt
    for text, form in _FORMS:
        yield text.format(x=x), lambda values, form=form: form(values[x])
    for a in (name for name in spec.parameters if name != x):
        for text, form in _FORMS_WITH_NUMBER:
            yield text.format(x=x, a=a), lambda values, form=form, a=a: form(values[x], values[a])


def _matching(spec: FunctionSpec, forms: list[Form], agree: Callable[..., bool]) -> str | None:
    for text, form in forms:
        try:
            if all(agree(spec, form, case) for case in spec.cases(Maker(0, "cpu"))):
                return text
        except Exception:
            continue
    return None


def _values(spec: FunctionSpec, case: Case) -> dict[str, Any]:
    return bound(inspect.signature(spec.primal), case)


def _values_agree(spec: FunctionSpec, form: Callable[..., Tensor], case: Case) -> bool:
    values = _values(spec, case)
    (mine,) = outputs(spec.function(*map(fresh, values.values())))
    theirs = form(values)
    return mine.dtype == theirs.dtype and torch.allclose(mine.detach(), theirs, rtol=1e-9, atol=1e-12)


def _gradients_agree(spec: FunctionSpec, form: Callable[..., Tensor], case: Case) -> bool:
    got = []
    for function in (lambda values: spec.function(*values.values()), form):
        values = _values(spec, case)
        leaves = {n: fresh(v).requires_grad_() for n, v in values.items() if n in spec.wrt and differentiable(v)}
        y = outputs(function({**values, **leaves}))
        # Whole numbers: the same cotangent whatever the dtype of the output.
        got.append(gradients(y, leaves, tuple(map(whole, like(y, 0)))))
    return all(
        mine is not None and theirs is not None and torch.allclose(mine, theirs, rtol=1e-9, atol=1e-12)
        for mine, theirs in zip(got[0].values(), got[1].values(), strict=True)
    )


def _case_text(case: Case) -> str:
    args = [_argument_text(value) for value in case.args]
    shown = f"({', '.join(args)}{',' if len(args) == 1 else ''})"
    kwargs = ", ".join(f"{name!r}: {_argument_text(value)}" for name, value in case.kwargs.items())
    return f"Case(name={case.name!r}, args={shown}{f', kwargs={{{kwargs}}}' if kwargs else ''})"


def _argument_text(value: Any) -> str:
    if not isinstance(value, Tensor):
        return repr(value)
    dtype = "" if value.dtype == torch.float64 else f"dtype={value.dtype}"
    return f"make({', '.join(filter(None, [*map(str, value.shape), dtype]))})"


def _constant(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"\W+", "_", words).strip("_").upper() or "SPEC"
