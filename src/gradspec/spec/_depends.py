"""The arguments that a gradient reaches, by an experiment: what `wrt` is where a spec leaves it out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from gradspec._one_line import one_line
from gradspec.spec._base import Case
from gradspec.spec._calls import bound_call
from gradspec.spec._fault import SpecFaultError
from gradspec.spec._maker import Maker


def depends_on(
    surrogate: Callable[..., Any], cases: Callable[[Any], Iterable[Any]], role: str = "surrogate"
) -> tuple[str, ...]:
    """Return the arguments of a surrogate that get a gradient in one case or another, in the order of its parameters.

    Args:
        surrogate: what backward is the derivative of.
        cases: makes the calls.
        role: the field of the spec that says so.

    Raises:
        ValueError: a case cannot be made or called, or no argument gets a gradient in any.
    """
    signature, found = inspect.signature(surrogate), set[str]()
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        for case in _made(cases):
            try:
                bound = bound_call(signature, case, role)
            except TypeError as error:
                raise ValueError(str(error)) from None
            try:
                found |= _reached(surrogate, bound)
            except SpecFaultError as error:
                raise ValueError(f"{str(error).replace(' of the spec', '', 1)}, on case {case.name!r}") from error
            except Exception as error:
                raise ValueError(f"{role} raises {one_line(error)}, on case {case.name!r}") from error
    if not found and role == "gradient":
        raise ValueError("gradient returns none for any argument in any case: return one, or say wrt=()")
    if not found:
        other = "" if role == "surrogate" else "surrogate= where its gradient is meant to differ, "
        raise ValueError(f"no argument gets a gradient from {role} in any case: give {other}a floating call, or wrt=()")
    return tuple(name for name in signature.parameters if name in found)


def _made(cases: Callable[[Any], Iterable[Any]]) -> list[Any]:
    try:
        made = list(cases(Maker(0, "cpu")))
    except Exception as error:
        raise ValueError(f"the cases cannot be made: {one_line(error)}") from error
    for case in made:
        if not isinstance(case, Case):
            raise ValueError(f"{case!r} is not a call: write a tuple of its arguments, (x, 0.5), or Case(x, 0.5)")
    if not made:
        raise ValueError("cases has no call: write cases=[(x, 0.5)]")
    return made


def _reached(surrogate: Callable[..., Any], bound: inspect.BoundArguments) -> set[str]:
    for name, value in bound.arguments.items():
        bound.arguments[name] = tree_map(_leaf, value)
    y = [t for t in tree_leaves(surrogate(*bound.args, **bound.kwargs)) if isinstance(t, Tensor) and t.requires_grad]
    total = sum((t.abs().sum() for t in y), torch.zeros(()))
    if not total.requires_grad:
        return set()
    under = {name: [t for t in tree_leaves(v) if _is_asked(t)] for name, v in bound.arguments.items()}
    leaves = [t for tensors in under.values() for t in tensors]
    gradients = iter(torch.autograd.grad(total, leaves, allow_unused=True))
    return {name for name, tensors in under.items() if _some(gradients, len(tensors))}


def _some(gradients: Iterator[Tensor | None], count: int) -> bool:
    return sum(next(gradients) is not None for _ in range(count)) > 0


def _leaf(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    value = value.detach().clone()
    return value.requires_grad_() if value.is_floating_point() or value.is_complex() else value


def _is_asked(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad
