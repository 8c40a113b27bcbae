"""Guess the formulas of forward and backward: simple forms that agree with the function on trial calls."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gradspec._one_line import listed
from gradspec.laws.tensor.support._call import bound, differentiable, fresh, gradients, like, outputs, whole
from gradspec.spec import Case, FunctionSpec
from gradspec.spec._maker import Maker

Form = tuple[str, Callable[..., Tensor]]
#: The text of a primal and of a surrogate, each with what is known of it; None where no known form agrees.
Guess = tuple[tuple[str, str] | None, tuple[str, str] | None]
UNKNOWN: Guess = (None, None)

#: What forward may compute of one tensor x; the text as it is in a lambda.
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


def guessed(spec: FunctionSpec, known: Collection[str] = ()) -> Guess:
    """Return what forward computes and the map whose derivative backward applies, where a known form agrees.

    It calls the function: in a child process, if it is not known to be harmless.

    Args:
        spec: of the function, in eager mode.
        known: the roles for which no form is looked for.
    """
    forms, cases = list(_forms(spec)), _pasted(spec)
    forms += [_float(*form) for form in forms]
    agree = {"primal": _values_agree, "surrogate": _gradients_agree}
    if "primal" in known:
        return UNKNOWN
    value, gradient = (None if role in known else _matching(spec, forms, cases, agree[role]) for role in agree)
    return _said(spec, cases, value), _said(spec, cases, gradient)


def _said(spec: FunctionSpec, cases: list[Case], form: str | None) -> tuple[str, str] | None:
    """Return a form with what is known of it: an argument of one value may be a part of it that nobody sees."""
    if form is None:
        return None
    given = [bound(inspect.signature(spec.primal), case) for case in cases]
    rest = [name for name in spec.parameters if name not in spec.wrt and not re.search(rf"\b{name}\b", form)]
    still = [name for name in rest if all(_is_same(values[name], given[0][name]) for values in given)]
    return form, f"agrees with every case{f', and none varies {listed(still)}' if still else ''}"


def _is_same(one: Any, other: Any) -> bool:
    is_tensor = isinstance(one, Tensor) and isinstance(other, Tensor)
    return torch.equal(one, other) if is_tensor else bool(one == other)


def _forms(spec: FunctionSpec) -> Iterator[tuple[str, Callable[..., Tensor]]]:
    """Yield the forms that fit the arguments: text, and a function of all arguments."""
    kinds = {parameter.kind for parameter in inspect.signature(spec.primal).parameters.values()}
    if len(spec.wrt) != 1 or kinds != {inspect.Parameter.POSITIONAL_OR_KEYWORD}:
        return
    (x,) = spec.wrt
    for text, form in _FORMS:
        yield text.format(x=x), lambda values, form=form: form(values[x])
    for a in (name for name in spec.parameters if name != x):
        for text, form in _FORMS_WITH_NUMBER:
            yield text.format(x=x, a=a), lambda values, form=form, a=a: form(values[x], values[a])


def _float(text: str, form: Callable[..., Tensor]) -> Form:
    """Return a form in float32, which a function may give whatever its input."""
    return f"({text}).float()", lambda values: form(values).float()


def _matching(spec: FunctionSpec, forms: list[Form], cases: list[Case], agree: Callable[..., bool]) -> str | None:
    for text, form in forms:
        try:
            if all(agree(spec, form, case) for case in cases):
                return text
        except Exception:
            continue
    return None


def _pasted(spec: FunctionSpec) -> list[Case]:
    """Return the cases, and others that the function takes: a form that agrees with few numbers may be a wrong promise.

    Tensors that reach farther from 0 tell x from a clipped x; another number tells -x from -lam * x with lam = 1.
    """
    given, make = list(spec.cases(Maker(0, "cpu"))), Maker(0, "cpu")
    others = [other for case in given for other in (_redrawn(case, make), *_varied(spec, case))]
    return [*given, *(case for case in others if _runs(spec, case))]


def _redrawn(case: Case, make: Maker) -> Case:
    def again(value: Any) -> Any:
        return make(*value.shape, dtype=value.dtype, low=-9.0, high=9.0) if differentiable(value) else value

    return replace(case, args=tuple(map(again, case.args)), kwargs={k: again(v) for k, v in case.kwargs.items()})


def _varied(spec: FunctionSpec, case: Case) -> Iterator[Case]:
    """Yield the case with another value of one argument, for each that is not differentiated."""
    values = bound(inspect.signature(spec.primal), case)
    for name in values:
        if name not in spec.wrt and (other := _other(values[name])) is not None:
            yield Case(name=f"{case.name}, other {name}", args=tuple({**values, name: other}.values()))


def _other(value: Any) -> Any:
    """Return another value of a kind; None where it is of no kind that has one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return 1.5 * value + 0.25 if isinstance(value, float) or differentiable(value) else None


def _runs(spec: FunctionSpec, case: Case) -> bool:
    """Whether the function takes a call: numbers that nobody gave may lie outside its domain."""
    try:
        y = outputs(spec.function(*map(fresh, bound(inspect.signature(spec.primal), case).values())))
    except Exception:
        return False
    return all(bool(t.isfinite().all()) for t in y)


def _values_agree(spec: FunctionSpec, form: Callable[..., Tensor], case: Case) -> bool:
    values = bound(inspect.signature(spec.primal), case)
    (mine,) = outputs(spec.function(*map(fresh, values.values())))
    theirs = form(values)
    return mine.dtype == theirs.dtype and torch.allclose(mine.detach(), theirs, rtol=1e-9, atol=1e-12)


def _gradients_agree(spec: FunctionSpec, form: Callable[..., Tensor], case: Case) -> bool:
    got, dtypes = [], []
    for function in (lambda values: spec.function(*values.values()), form):
        values = bound(inspect.signature(spec.primal), case)
        leaves = {n: fresh(v).requires_grad_() for n, v in values.items() if n in spec.wrt and differentiable(v)}
        y = outputs(function({**values, **leaves}))
        dtypes.append([t.dtype for t in y])
        # Whole numbers: the same cotangent whatever the dtype of the output.
        got.append(gradients(y, leaves, tuple(map(whole, like(y, 0)))))
    return dtypes[0] == dtypes[1] and all(
        mine is not None and theirs is not None and torch.allclose(mine, theirs, rtol=1e-9, atol=1e-12)
        for mine, theirs in zip(got[0].values(), got[1].values(), strict=True)
    )
