"""The spec of the linear cross-entropy."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from gradspec.functions._linear_cross_entropy import _cases
from gradspec.functions._linear_cross_entropy._differences import DIFFERENCES
from gradspec.functions._linear_cross_entropy._function import LinearCrossEntropy
from gradspec.functions._linear_cross_entropy._logits import is_kept
from gradspec.functions._linear_cross_entropy._loss import linear_cross_entropy
from gradspec.functions._linear_cross_entropy._plain import plain_loss
from gradspec.spec import FunctionSpec, Placements, Saved, Supports


def _saved(x: Tensor, weight: Tensor, target: Tensor, bias: Any, margin: Any, *_: Any) -> int:
    numbers = 4 if isinstance(margin, float | int) else 3
    kept = len(x) * len(weight) if is_kept(x, len(weight)) else 0
    # These numbers are in float32 where x is in half precision.
    return x.numel() * x.element_size() + (numbers * len(x) + kept) * max(x.element_size(), 4)


def _over_ranks(
    x: Tensor,
    weight: Tensor,
    target: Tensor,
    bias: Tensor | None = None,
    margin: Tensor | float | None = None,
    temperature: float | Tensor = 1.0,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the loss of each row of this rank, against a weight that it holds some rows of."""
    return linear_cross_entropy(
        x,
        weight,
        target,
        bias=bias,
        margin=margin,
        temperature=temperature,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        reduction="none",
    )


LINEAR_CROSS_ENTROPY = FunctionSpec(
    name="linear_cross_entropy",
    function=LinearCrossEntropy.apply,
    primal=plain_loss,
    surrogate=plain_loss,
    wrt=("x", "weight", "bias", "margin"),
    cases=_cases.cases,
    raises=_cases.misuses,
    arguments=_cases.ARGUMENTS,
    documented=(LinearCrossEntropy, linear_cross_entropy),
    saved=Saved(
        text="the gradient by `x`, and three numbers a row, four where the margin is a number; for a gradient by the "
        "weight or the bias, one number a logit, of at most 2**22 logits",
        bytes=_saved,
    ),
    placements=(Placements(arguments={"weight": "shard(0)", "bias": "shard(0)"}, output="plain", call=_over_ranks),),
    references=_cases.REFERENCES,
    differences=DIFFERENCES,
    supports=Supports.all(),
)
