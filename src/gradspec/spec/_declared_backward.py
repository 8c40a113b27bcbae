"""The primal with a declared gradient, as a Function: legal in a graph, under `torch.func` and under `torch.vmap`."""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import TreeSpec, tree_flatten, tree_leaves, tree_unflatten

from gradspec.spec._fault import SpecFaultError, spec_faults


def apply(
    primal: Callable[..., Any],
    gradient: Callable[..., Any],
    signature: inspect.Signature,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Any:
    """Return what the primal returns; behind it, backward is `gradient`.

    Raises:
        SpecFaultError: (in the backward pass) `gradient` raises, or returns what is not a gradient of each argument.
    """
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    # Tensors in a list or a dict have a gradient only as arguments of their own.
    leaves, structure = tree_flatten(dict(bound.arguments))
    return _Declared.apply(_Rule(primal, gradient, signature, structure), *leaves)  # type: ignore[no-untyped-call]  # torch's own


@dataclass(frozen=True)
class _Rule:
    """A primal and its gradient, of arguments whose tensors are taken apart."""

    primal: Callable[..., Any]
    gradient: Callable[..., Any]
    signature: inspect.Signature
    structure: TreeSpec

    def value(self, leaves: Sequence[Any]) -> Any:
        call = inspect.BoundArguments(self.signature, tree_unflatten(list(leaves), self.structure))
        y = self.primal(*call.args, **call.kwargs)
        return tuple(map(_own, y)) if isinstance(y, tuple | list) else _own(y)

    def gradients(self, leaves: Sequence[Any], output: Any, cotangent: Any) -> tuple[Tensor | None, ...]:
        """Return the gradient of each leaf, None for one to which none flows."""
        values = tree_unflatten(list(leaves), self.structure)
        inputs = namedtuple("inputs", values, rename=True)(*values.values())
        with spec_faults("gradient"):
            given = self.gradient(inputs, output, cotangent)
        by_name = self._by_name(given, tuple(values))
        found: list[Tensor | None] = []
        for name, value in values.items():
            found += _of_argument(name, value, by_name.get(name))
        return tuple(found)

    def _by_name(self, given: Any, names: tuple[str, ...]) -> Mapping[str, Any]:
        if isinstance(given, Mapping):
            if strange := [name for name in given if name not in names]:
                raise SpecFaultError(f"the gradient of the spec names {strange[0]!r}, which is not among {names}")
            return given
        given = tuple(given) if isinstance(given, tuple | list) else (given,)
        if len(given) > len(names):
            raise SpecFaultError(
                f"the gradient of the spec returns {len(given)} gradients, and the call has {len(names)} arguments: "
                "return one for each argument, in order, or a dict by name"
            )
        return dict(zip(names, given, strict=False))  # trailing None may be left out


def _of_argument(name: str, value: Any, given: Any) -> list[Tensor | None]:
    """Return the gradient of each tensor in an argument, and None for whatever else is in it."""
    leaves = tree_leaves(value)
    if given is None:
        return [None] * len(leaves)
    gradients = tree_leaves(given, is_leaf=lambda part: part is None)
    if len(gradients) != len(leaves):
        raise SpecFaultError(f"the gradient of the spec has {len(gradients)} gradients for {name}, of {len(leaves)}")
    for leaf, gradient in zip(leaves, gradients, strict=True):
        if gradient is None or not isinstance(leaf, Tensor):
            continue
        if not isinstance(gradient, Tensor):
            kind = type(gradient).__name__
            raise SpecFaultError(f"the gradient of the spec for {name} is a {kind}, expected a tensor or None")
        if gradient.shape != leaf.shape:
            got, expected = tuple(gradient.shape), tuple(leaf.shape)
            raise SpecFaultError(f"the gradient of the spec for {name} has the shape {got}, and {name} has {expected}")
    return [g if isinstance(leaf, Tensor) else None for leaf, g in zip(leaves, gradients, strict=True)]


def _own(value: Any) -> Any:
    """Return a tensor in memory of its own: torch treats an output that is an argument, or a view of one, otherwise."""
    return value.clone() if isinstance(value, Tensor) else value


class _Declared(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(rule: _Rule, *leaves: Any) -> Any:
        return rule.value(leaves)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.rule, *leaves = inputs
        ctx.is_tuple = isinstance(output, tuple)
        outputs = output if ctx.is_tuple else (output,)
        ctx.mark_non_differentiable(*(t for t in outputs if isinstance(t, Tensor) and not _carries_gradient(t)))
        every = [*leaves, *outputs]
        ctx.others = [None if isinstance(value, Tensor) else (value,) for value in every]
        ctx.save_for_backward(*(value for value in every if isinstance(value, Tensor)))

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        tensors = iter(ctx.saved_tensors)
        every = [next(tensors) if other is None else other[0] for other in ctx.others]
        count = len(every) - len(cotangents)
        leaves, output = every[:count], tuple(every[count:])
        if not ctx.is_tuple:
            (output,), (cotangents,) = output, cotangents
        return None, *ctx.rule.gradients(leaves, output, cotangents)


def _carries_gradient(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()
