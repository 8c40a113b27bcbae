r"""Merge attention over slices of the keys: the one formula that chunks, split keys and shards share.

.. math::

    \ell = \log \sum_s e^{\ell_s}, \qquad o = \sum_s e^{\ell_s - \ell}\, o_s

where slice :math:`s` gave the output :math:`o_s`, a softmax-weighted mean of its values, and the log-sum-exp
:math:`\ell_s` of its logits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from gradspec.functions._linear_cross_entropy._logits import most_numbers

#: The softmax-weighted mean of some rows, and the log-sum-exp of their logits.
Pair = tuple[Tensor, Tensor]


def merge_by_log_sum_exp(outputs: Tensor, log_sum_exps: Tensor) -> tuple[Tensor, Tensor]:
    r"""Merge softmax-weighted means over slices of the keys into the mean over all keys.

    .. math::

        \ell = \log \sum_s e^{\ell_s}, \qquad o = \sum_s e^{\ell_s - \ell}\, o_s

    The result is that of one softmax over all keys, up to rounding, in whatever order and sizes they are sliced: by
    chunk, by processor, or by rank, where each holds a shard of a memory bank. Differentiable, and merges in turn.

    Args:
        outputs: shape (S, ..., D), floating: for each of S slices, the mean of its values under the softmax of its
            logits.
        log_sum_exps: shape (S, ...), floating: the log-sum-exp of the logits of each slice. A slice without a key
            has `-inf`, and whatever its output holds counts for nothing.

    Returns:
        The merged mean, shape (..., D), and its log-sum-exp, shape (...). Where every slice is without a key, zeros
        and `-inf`.

    Raises:
        ValueError: the shapes do not fit, or there is no slice.

    Example:
        >>> import torch
        >>> logits, values = torch.randn(2, 5), torch.randn(5, 3)
        >>> slices = [(0, 2), (2, 5)]
        >>> outputs = torch.stack([logits[:, a:b].softmax(1) @ values[a:b] for a, b in slices])
        >>> log_sum_exps = torch.stack([logits[:, a:b].logsumexp(1) for a, b in slices])
        >>> output, log_sum_exp = merge_by_log_sum_exp(outputs, log_sum_exps)
        >>> torch.testing.assert_close(output, logits.softmax(1) @ values)
        >>> torch.testing.assert_close(log_sum_exp, logits.logsumexp(1))

    References:
        `Online normalizer calculation for softmax <https://arxiv.org/abs/1805.02867>`_, Milakov and Gimelshein, 2018,
        section 3.1.
    """
    if outputs.shape[:-1] != log_sum_exps.shape or log_sum_exps.ndim == 0:
        raise ValueError(
            f"merge_by_log_sum_exp: outputs have shape {tuple(outputs.shape)} and log_sum_exps "
            f"{tuple(log_sum_exps.shape)}, expected (S, ..., D) and (S, ...): stack the slices in dimension 0"
        )
    if log_sum_exps.shape[0] == 0:
        raise ValueError("merge_by_log_sum_exp: there is no slice to merge, expected one at least")
    empty = log_sum_exps == -torch.inf
    largest = log_sum_exps.amax(0).detach()
    largest = largest.masked_fill(largest == -torch.inf, 0)  # -inf - -inf would be NaN where every slice is empty
    # With m = max_s l_s:  sum_s e^{l_s} = e^m sum_s e^{l_s - m}, so l = m + log sum_s e^{l_s - m}, where no power is
    # above 1; and e^{l_s - l} = e^{l_s - m} / sum_t e^{l_t - m}, in which m cancels: its gradient is not needed.
    weights = (log_sum_exps - largest).exp()
    total = weights.sum(0)
    # Over their own sum, which is exact where exp(log_sum_exps - log_sum_exp) has lost the digits of large logits.
    shares = weights / total.masked_fill(total == 0, 1)
    return (shares.unsqueeze(-1) * outputs.masked_fill(empty.unsqueeze(-1), 0)).sum(0), largest + total.log()


def merged(stacks: Iterable[Pair]) -> Pair:
    """Merge slices as they come, in stacks of some, and hold no more numbers than a chunk does, or two stacks.

    Args:
        stacks: shapes (S, ..., D) and (S, ...), S slices each.
    """
    held: list[Pair] = []
    for stack in stacks:
        held.append(stack)
        if len(held) > 1 and sum(outputs.numel() for outputs, _ in held) > most_numbers(stack[0]):
            held = [tuple(value.unsqueeze(0) for value in _merged(held))]  # type: ignore[list-item]
    return _merged(held)


def _merged(stacks: Sequence[Pair]) -> Pair:
    outputs, log_sum_exps = (
        values[0] if len(values) == 1 else torch.cat(values) for values in zip(*stacks, strict=True)
    )
    if outputs.shape[0] == 1:
        return outputs.squeeze(0), log_sum_exps.squeeze(0)
    return merge_by_log_sum_exp(outputs, log_sum_exps)
