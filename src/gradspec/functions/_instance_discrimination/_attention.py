r"""The softmax-weighted mean of the rows of a memory bank, with its log-sum-exp, and no buffer of B x N.

.. math::

    \ell_i = \log \sum_j e^{q_i \cdot k_j}, \qquad o_i = \sum_j e^{q_i \cdot k_j - \ell_i}\, k_j

It is attention with the bank as keys and as values, so torch's flash attention computes both in two matrix products.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from gradspec.functions._instance_discrimination._log_sum_exp import merge_by_log_sum_exp

#: How many numbers a chunk holds at once, logits or a copy of rows: 8 MB in float32.
CHUNK_NUMBERS = 2**21
#: The fewest rows of the bank that are worth a share of their own.
SHARE_ROWS = 4096
FLASH_TYPES = (torch.float32, torch.float64)
HALF_TYPES = (torch.float16, torch.bfloat16)

Pair = tuple[Tensor, Tensor]


def attend(queries: Tensor, bank: Tensor) -> Pair:
    """Return the weighted mean of the rows of a bank for each query, and its log-sum-exp.

    Args:
        queries: shape (V, B, D), float32 or float64, already divided by the temperature. None of its sizes is 0.
        bank: shape (N, D), or (V, N, D) for a bank each; not empty. A half type is read in the dtype of the queries.

    Returns:
        Shapes (V, B, D) and (V, B), in the dtype of the queries.
    """
    shared = bank.ndim == 2
    if shared and queries.shape[0] > 1:
        mean, log_sum_exp = attend(queries.flatten(0, 1).unsqueeze(0), bank)
        return mean.view(queries.shape), log_sum_exp.view(queries.shape[:-1])
    keys = bank.unsqueeze(0) if shared else bank
    if not _flash_reads(queries, keys):
        return attend_plainly(queries, keys)
    if keys.dtype == queries.dtype and keys.stride(-1) == 1:
        return _flash(queries, keys)
    # Flash attention reads rows without gaps, and one dtype: lay out a chunk at a time, never the whole bank.
    return merged(_flash(queries, chunk.to(queries.dtype).contiguous()) for chunk in chunks(queries, keys))


def attend_plainly(queries: Tensor, keys: Tensor) -> Pair:
    """Return the same in plain torch, a chunk of the bank at a time: for what flash attention does not take."""
    return merged(_plain(queries, chunk.to(queries.dtype)) for chunk in chunks(queries, keys))


def chunks(queries: Tensor, keys: Tensor) -> Iterator[Tensor]:
    """Yield slices of the rows of a bank, each so small that its logits, and a copy of it, are few numbers."""
    banks, batch, size = queries.shape
    height = max(1, CHUNK_NUMBERS // (banks * max(batch, size)))
    for start in range(0, keys.shape[-2], height):
        yield keys.narrow(-2, start, min(height, keys.shape[-2] - start))


def merged(pairs: Iterator[Pair]) -> Pair:
    """Merge as the pairs come, so that no more than two are held."""
    total = next(pairs)
    for pair in pairs:
        total = merge_by_log_sum_exp(*(torch.stack(two) for two in zip(total, pair, strict=True)))
    return total


def _plain(queries: Tensor, keys: Tensor) -> Pair:
    logits = queries @ keys.mT
    return logits.softmax(-1) @ keys, logits.logsumexp(-1)


def _flash_reads(queries: Tensor, keys: Tensor) -> bool:
    if queries.device.type == "cpu":
        return queries.dtype in FLASH_TYPES
    if queries.device.type != "cuda" or queries.dtype != torch.float32:
        return False
    row = keys[..., :1, :].to(queries.dtype).unsqueeze(1)
    given = torch.backends.cuda.SDPAParams(queries.unsqueeze(1), row, row, None, 0.0, False, False)
    return torch.backends.cuda.can_use_efficient_attention(given)


def _flash(queries: Tensor, keys: Tensor) -> Pair:
    """Attend by flash attention, with the bank dealt out in as many shares as keep every processor busy."""
    shares, size = _shares(queries, keys), keys.shape[-2]
    rows = size // shares
    dealt = keys.narrow(-2, 0, shares * rows).view(-1, shares, rows, keys.shape[-1])
    mean, log_sum_exp = _kernel(queries, dealt)
    if shares == 1:
        return mean.squeeze(1), log_sum_exp.squeeze(1)
    means, log_sum_exps = mean.movedim(1, 0), log_sum_exp.movedim(1, 0)
    if rest := size - shares * rows:
        pair = _plain(queries, keys.narrow(-2, size - rest, rest))
        means, log_sum_exps = (torch.cat((a, b.unsqueeze(0))) for a, b in zip((means, log_sum_exps), pair, strict=True))
    return merge_by_log_sum_exp(means, log_sum_exps)


def _kernel(queries: Tensor, keys: Tensor) -> Pair:
    """Attend to keys (V, S, N, D), S shares of each bank as heads; return shapes (V, S, B, D) and (V, S, B)."""
    queries = queries.contiguous().unsqueeze(1).expand(-1, keys.shape[1], -1, -1)
    if queries.device.type == "cpu":
        mean, log_sum_exp = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(queries, keys, keys, scale=1.0)
        return mean, log_sum_exp
    mean, log_sum_exp, *_ = torch.ops.aten._scaled_dot_product_efficient_attention(
        queries, keys, keys, None, True, scale=1.0
    )
    return mean, log_sum_exp[..., : queries.shape[-2]]  # the kernel pads it to a multiple of 32


def _shares(queries: Tensor, keys: Tensor) -> int:
    """Return into how many shares to deal the bank: flash attention makes a task of each block of queries alone."""
    banks, batch = queries.shape[:2]
    if queries.device.type == "cpu":
        block = 256 if batch >= 768 else 64 if batch >= 192 else 32  # the blocks of torch's kernel
        processors = torch.get_num_threads()
    else:
        block = 64
        processors = 2 * torch.cuda.get_device_properties(queries.device).multi_processor_count
    tasks = banks * math.ceil(batch / block)
    even = processors // math.gcd(tasks, processors) if tasks < 4 * processors else 1
    return max(1, min(even, keys.shape[-2] // SHARE_ROWS))
