r"""A gradient that nobody asked for is not computed, and one that is asked for is.

Why it matters: a wasted matrix product in every step, or a gradient that is lost when another input is frozen.

What breaks it: a backward that ignores `ctx.needs_input_grad`, mixes up its positions, or has a branch of its own for
a frozen weight that is wrong.

In an audit, an error where something is frozen that the call trains is not promised, as any other use of the function.

Remedy: return None for each argument whose `ctx.needs_input_grad` is false.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from inspect import Parameter
from typing import Any, TypeAlias

import torch
from torch import Tensor

from gradspec._finding import UNASKED
from gradspec._one_line import listed
from gradspec.law import HOLDS, Finding, Law, Rank, Status, Trial, broken, not_applicable, shown
from gradspec.laws.tensor.support._call import Inputs, like, outputs, vjp
from gradspec.laws.tensor.support._compare import compare_all, describe
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._graph import classes_behind, is_of_operator, leaves_behind, of_operator
from gradspec.laws.tensor.support._reference import is_of_module, marked, plain_call
from gradspec.laws.tensor.support._spying import spying
from gradspec.spec._sheet import forward_signature

#: What each Function behind the output was handed in a pass, and what its backward returned.
Calls: TypeAlias = Sequence[tuple[type, Sequence[tuple[tuple[Any, ...], tuple[Any, ...]]]]]

HIDDEN = (
    "it depends on a tensor that requires grad and is no argument: in a module, one that is not registered as "
    "nn.Parameter, and that parameters() and state_dict() miss"
)

#: From how many frozen arguments on only their number is said.
_MANY = 4
MADE = "a tensor that is made in the call requires it"
OWN = "it differentiates by a tensor of its own: detach the result where no input requires grad"


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    y = outputs(trial.spec.function(*inputs.args(inputs.leaves())))
    classes = classes_behind(y)
    # Of all at once: in an audit the reference is the function itself, which would be compared with itself otherwise.
    # The cotangent has the dtype of the output: a spike of float32 has none of a reference in float64.
    expected = vjp(plain_call(trial.spec, inputs), inputs, like(y, trial.seed))
    waste = refused = HOLDS
    for when, asked in _fewer(inputs.wrt):
        with ExitStack() as stack:
            calls = [(cls, stack.enter_context(spying(cls, "backward"))) for cls in classes]
            try:
                got = vjp(trial.spec.function, Inputs(inputs.values, asked), seed=trial.seed)
            except Exception as error:
                trained = marked(trial.spec, trial.case.name)
                frozen = [name for name in inputs.wrt if name in trained and name not in asked]
                if not frozen:
                    raise
                refused = _refused(frozen, error) if refused is HOLDS else refused
                continue
        finding = compare_all(trial, "gradient", got, {name: expected[name] for name in asked}, when=when)
        if finding is not HOLDS:
            return finding
        waste = _waste(trial, calls) if waste is HOLDS else waste
    least = waste if refused is HOLDS else refused
    y = trial.spec.function(*inputs.args())
    if not any(isinstance(t, Tensor) and t.requires_grad for t in outputs(y)):
        return least  # last: a wrong gradient is worse
    found = leaves_behind(y)
    if found and not is_of_module(trial.spec) and all(isinstance(leaf, torch.nn.Parameter) for leaf in found):
        return least  # those of a module that the function runs
    hidden = [describe(leaf) for leaf in found]
    # What is made in the call is another tensor in the next one.
    again = leaves_behind(trial.spec.function(*inputs.args()))
    is_made = bool(found) and not any(leaf is other for leaf in found for other in again)
    return broken(
        "the output requires grad though no input does" + (f": {MADE}" if is_made else ""),
        got=f"a graph that leads to {', '.join(hidden) or 'no leaf'}",
        expected="no graph",
        likely=OWN if is_made else HIDDEN if hidden else "",
        rank=Rank.WASTE if is_made else "",
    )


def _refused(frozen: Sequence[str], error: Exception) -> Finding:
    """Return what is said of an error where something is frozen that the call trains: nobody has asked for that."""
    names = listed(frozen) if len(frozen) < _MANY else f"{len(frozen)} arguments"
    said = f"with {names} frozen, which the call trains, it raises {shown(error)}"
    return Finding(status=Status.NOT_PROMISED, message=said, details={"raised": shown(error), "frozen": list(frozen)})


def _fewer(names: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield which arguments require a gradient in a pass, in words and by name: each by itself, and all but each."""
    for name in names:
        yield "the only one required", (name,)
    if len(names) > 2:
        for frozen in names:
            yield f"with `{frozen}` frozen", tuple(name for name in names if name != frozen)


def _waste(trial: Trial, calls: Calls) -> Finding:
    """Return what says of a pass that a gradient was computed that nobody asked for."""
    found = ((cls, ctx, returned) for cls, seen in calls for (ctx, *_), returned in seen)
    for cls, ctx, returned in found:
        if (place := _wasted(ctx, returned)) is not None:
            return _nobody_asked(trial, cls, place, returned[place])
    return HOLDS


def _wasted(ctx: Any, returned: tuple[Any, ...]) -> int | None:
    """Return the place of a gradient that was not asked for."""
    needed = ctx.needs_input_grad
    return next((k for k, raw in enumerate(returned[: len(needed)]) if isinstance(raw, Tensor) and not needed[k]), None)


def _nobody_asked(trial: Trial, cls: type, place: int, raw: Tensor) -> Finding:
    names = list(Inputs.of(trial).values)
    overload = getattr(trial.spec, "overload", None)
    is_own = trial.spec.autograd_function is cls
    if overload is not None and is_of_operator(cls):
        is_own = of_operator(cls) == overload._schema.name.replace("::", "_")
    what = f"`{names[place]}`" if is_own and place < len(names) else _argument(cls, place)
    return broken(
        f"backward computes a gradient for {what} also where none is asked for",
        argument=f"what backward returns for {what}",
        got=describe(raw),
        expected="None",
        likely="backward ignores ctx.needs_input_grad",
        rank=Rank.WASTE,
        details={UNASKED: place},
    )


def _argument(cls: Any, place: int) -> str:
    """Return an argument of a Function by the name that its forward gives it, where that is known."""
    if is_of_operator(cls):
        return f"argument {place} of the operator {of_operator(cls)}"
    parameters = quietly(lambda: list(forward_signature(cls).parameters.values())) or []
    for k, parameter in enumerate(parameters[: place + 1]):
        if parameter.kind is Parameter.VAR_POSITIONAL:
            return f"argument `{parameter.name}[{place - k}]` of `{cls.__name__}`"
    if place < len(parameters):
        return f"argument `{parameters[place].name}` of `{cls.__name__}`"
    return f"argument {place} of {cls.__name__}.apply"


NEEDS_INPUT_GRAD = Law(
    name="needs_input_grad",
    family="protocol",
    statement=r"\bar{x}_i = \varnothing \iff x_i \text{ needs no gradient}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
)
