"""The loss as it is written in plain torch, by all logits at once: what the function computes, and is held to."""

from __future__ import annotations

import torch
from torch import Tensor

from gradspec.functions._linear_cross_entropy._logits import Temperature


def plain_loss(
    x: Tensor,
    weight: Tensor,
    target: Tensor,
    bias: Tensor | None = None,
    margin: Tensor | float | None = None,
    temperature: Temperature = 1.0,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the loss of each row in plain differentiable torch, by a buffer of B x N logits."""
    logits = x @ weight.mT if bias is None else x @ weight.mT + bias
    own = torch.where(target == ignore_index, 0, target)
    if margin is not None:
        logits = logits - torch.nn.functional.one_hot(own, weight.shape[0]) * torch.as_tensor(
            margin, dtype=x.dtype, device=x.device
        ).unsqueeze(-1)
    # Not logsumexp less the own logit: of large logits that difference has lost the digits of a small loss.
    return torch.nn.functional.cross_entropy(
        logits / temperature,
        target,
        reduction="none",
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
    )
