r"""The softmax-weighted mean of the rows of a weight, with its log-sum-exp, and no buffer of B x N.

.. math::

    \ell_i = \log \sum_j e^{q_i \cdot k_j + c_j}, \qquad o_i = \sum_j e^{q_i \cdot k_j + c_j - \ell_i}\, k_j

It is attention with the rows as keys and as values, so torch's flash attention computes both in two matrix products;
the bias :math:`c` is a mask of attention that is added.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from gradspec.functions._linear_cross_entropy._log_sum_exp import Pair, merged
from gradspec.functions._linear_cross_entropy._logits import spans

#: The fewest rows that are worth a share of their own, on a CPU and on a device.
SHARE_ROWS = 4096
DEVICE_SHARE_ROWS = 1024
FLASH_TYPES = (torch.float32, torch.float64)


def attend(queries: Tensor, keys: Tensor, bias: Tensor | None = None) -> Pair:
    """Return the weighted mean of the keys for each query, and its log-sum-exp.

    Args:
        queries: shape (B, D), float32 or float64, already divided by the temperature. Neither size is 0.
        keys: shape (N, D), not empty. A half type is read in the dtype of the queries.
        bias: shape (N,), dtype of the queries, already divided by the temperature.

    Returns:
        Shapes (B, D) and (B,), in the dtype of the queries.
    """
    return merged(_stacks(queries, keys, bias))


def _stacks(queries: Tensor, keys: Tensor, bias: Tensor | None) -> Iterator[Pair]:
    """Attend to some keys at a time; yield shapes (S, B, D) and (S, B) of S slices."""
    if not _flash_reads(queries, keys, bias):
        yield from (_plain(queries, *part) for part in _parts(queries, keys, bias))
    elif keys.dtype == queries.dtype and keys.stride(-1) == 1:
        yield from _flash(queries, keys, bias)
    else:
        # Flash attention reads rows without gaps, and one dtype: lay out a chunk at a time, never the whole weight.
        for part, of_part in _parts(queries, keys, bias):
            yield from _flash(queries, part.contiguous(), of_part)


def _parts(queries: Tensor, keys: Tensor, bias: Tensor | None) -> Iterator[tuple[Tensor, Tensor | None]]:
    for span in spans(queries, keys):
        yield keys[span].to(queries.dtype), None if bias is None else bias[span]


def _plain(queries: Tensor, keys: Tensor, bias: Tensor | None) -> Pair:
    logits = queries @ keys.mT if bias is None else torch.addmm(bias, queries, keys.mT)
    return (logits.softmax(-1) @ keys).unsqueeze(0), logits.logsumexp(-1).unsqueeze(0)


def _flash_reads(queries: Tensor, keys: Tensor, bias: Tensor | None) -> bool:
    if queries.device.type == "cpu":
        return queries.dtype in FLASH_TYPES
    # On CUDA an added mask must be aligned, and its kernel is not tried here.
    if queries.device.type != "cuda" or queries.dtype != torch.float32 or bias is not None:
        return False
    rows = queries.view(1, 1, *queries.shape)
    row = keys[:1].to(queries.dtype).view(1, 1, 1, -1)
    given = torch.backends.cuda.SDPAParams(rows, row, row, None, 0.0, False, False)
    return torch.backends.cuda.can_use_efficient_attention(given)


def _flash(queries: Tensor, keys: Tensor, bias: Tensor | None) -> Iterator[Pair]:
    """Attend by flash attention, with the keys dealt out in as many shares as keep every processor busy."""
    shares, (size, features) = _shares(queries, keys), keys.shape
    whole = size - size % shares
    for begin, end, count in ((0, whole, shares), (whole, size, 1)):
        if begin < end:
            rows = (end - begin) // count
            yield _kernel(
                queries,
                keys[begin:end].view(1, count, rows, features),
                None if bias is None else bias[begin:end].view(1, count, 1, rows),
            )


def _kernel(queries: Tensor, keys: Tensor, bias: Tensor | None) -> Pair:
    """Attend to keys (1, S, N, D), the S shares as heads; return shapes (S, B, D) and (S, B)."""
    queries = queries.contiguous().expand(1, keys.shape[1], -1, -1)
    if queries.device.type == "cpu":
        mean, log_sum_exp = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            queries, keys, keys, attn_mask=bias, scale=1.0
        )
        return mean.squeeze(0), log_sum_exp.squeeze(0)
    mean, log_sum_exp, *_ = torch.ops.aten._scaled_dot_product_efficient_attention(
        queries, keys, keys, None, True, scale=1.0
    )
    # The kernel pads the log-sum-exp to a multiple of 32.
    return mean.squeeze(0), log_sum_exp.squeeze(0)[:, : queries.shape[-2]]


def _shares(queries: Tensor, keys: Tensor) -> int:
    """Return into how many shares to deal the keys: flash attention makes a task only of each block of queries."""
    batch = queries.shape[0]
    if queries.device.type == "cpu":
        block = 256 if batch >= 768 else 64 if batch >= 192 else 32  # the blocks of torch's kernel
        processors, least = torch.get_num_threads(), SHARE_ROWS
    else:
        block = 64
        processors = 2 * torch.cuda.get_device_properties(queries.device).multi_processor_count
        least = DEVICE_SHARE_ROWS
    tasks = math.ceil(batch / block)
    even = processors // math.gcd(tasks, processors) if tasks < 4 * processors else 1
    return max(1, min(even, keys.shape[0] // least))
