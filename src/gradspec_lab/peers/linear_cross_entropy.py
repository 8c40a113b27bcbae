"""How torch's own linear cross-entropy is held: with its options, which is the form without all the logits."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gradspec.spec import Case, FunctionSpec, Make


def rows(function: Any) -> Callable[..., Any]:
    """Return the form of a loss for each row, with the arguments of ours."""
    return partial(_called, function, "none")


def total(function: Any) -> Callable[..., Any]:
    """Return the form of one number, which computes its gradients in the forward pass."""
    return partial(_called, function, "sum")


def _called(
    function: Any,
    reduction: str,
    x: Tensor,
    weight: Tensor,
    target: Tensor,
    bias: Tensor | None = None,
    margin: None = None,
    temperature: float | Tensor = 1.0,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:
    assert margin is None, "torch's has no margin, and no case here has one"
    return function(
        x / temperature,
        weight,
        target,
        linear_bias=None if bias is None else bias / temperature,
        reduction=reduction,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        options=torch.nn.LinearCrossEntropyOptions(),
    )


def offered(spec: FunctionSpec) -> FunctionSpec:
    """Return our spec of what torch's has: no margin, and no smoothing, for which it computes all the logits.

    Its wrong calls are its own: nobody has promised our errors. Of one class, each gradient is exactly 0, and a law
    takes no rounding for that.
    """

    def cases(make: Make) -> Iterator[Case]:
        for case in spec.cases(make):
            if case.name != "one class" and not {"margin", "label_smoothing"} & set(case.kwargs):
                yield case

    # The words on our arguments are promises of ours.
    unsaid = tuple(replace(argument, shape="", dtype="", range="") for argument in spec.arguments)
    return replace(spec, cases=cases, raises=None, arguments=unsaid)


def summed(spec: FunctionSpec) -> FunctionSpec:
    """Return the spec of the sum of the losses."""
    primal = spec.primal

    def loss(
        x: Tensor,
        weight: Tensor,
        target: Tensor,
        bias: Tensor | None = None,
        margin: Tensor | None = None,
        temperature: float | Tensor = 1.0,
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
    ) -> Any:
        return primal(x, weight, target, bias, margin, temperature, ignore_index, label_smoothing).sum()

    return replace(offered(spec), primal=loss, surrogate=loss)
