r"""The mathematics of a memory bank: its two linear maps, and how its rows move.

.. math::

    y = x M^{\top} / T, \qquad \bar{x} = \bar{y} M / T, \qquad
    m_i \leftarrow \operatorname{normalize}(\mu\, m_i + (1 - \mu)\, x)

Each map is the derivative of the other, so that together they can be differentiated any number of times, and both are
about the bank :math:`M` as one forward pass saw it, whatever has moved since.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import is_fake
from torch.autograd import Function

from gradspec.functions._linear_average import _journal as journal
from gradspec.functions._linear_average._journal import Seen
from gradspec.functions._torch import apply_function, transforms_active, without_autocast


def logits(x: Tensor, memory: Tensor, params: Tensor) -> Tensor:
    """Return `x @ memory.T / T`: shapes (B, D) and (N, D) to (B, N), in the dtype of the bank."""
    with without_autocast(memory):
        return (x / params[0]) @ memory.T  # x is the small one: a bank of many rows has large logits


def transposed(y_bar: Tensor, params: Tensor, seen: Seen) -> Tensor:
    """Return `y_bar @ memory / T` for the bank that was seen, (B, N) to (B, D); it can be differentiated."""
    if not torch.is_grad_enabled():
        return _transposed(y_bar, params, seen)
    return apply_function(Transposed, y_bar, params, seen)


def _transposed(y_bar: Tensor, params: Tensor, seen: Seen) -> Tensor:
    memory, moved = seen.memory, seen.moved_since()
    with without_autocast(memory):
        # y_bj = sum_d x_bd M_jd / T, so x_bar_bd = sum_j y_bar_bj dy_bj/dx_bd = sum_j y_bar_bj M_jd / T.
        x_bar = y_bar @ memory
        if moved is not None:
            rows, old, once = moved
            # M_seen = M_now + sum_r e_r (old_r - now_r)^T over the rows that have moved since, each once, so
            #   y_bar M_seen = y_bar M_now + y_bar[:, rows] (old - now):
            # the bank as it was, without a copy of the bank. `rows` may repeat a row, and a sum would then count its
            # term again: `once` keeps the first of them and makes the others 0.
            correction = (old - memory[rows]) * once[:, None]
            x_bar = x_bar + y_bar.index_select(1, rows) @ correction
        return x_bar / params[0] if transforms_active() else x_bar.div_(params[0])


def _product(x: Tensor, params: Tensor, seen: Seen) -> Tensor:
    memory, moved = seen.memory, seen.moved_since()
    y = logits(x, memory, params)
    if moved is not None:
        rows, old, _ = moved
        # Column j of y is x . m_j / T: only the columns of rows that have moved since are others. Repeated rows come
        # with the same old value, so it does not matter which of them is written last.
        y = y.index_copy(1, rows, logits(x, old, params))
    return y


class Transposed(Function):
    """The transposed map `y_bar @ memory / T`, whose derivative is the product."""

    @staticmethod
    def forward(y_bar: Tensor, params: Tensor, seen: Seen) -> Tensor:
        """Return the product with the bank that was seen."""
        return _transposed(y_bar, params, seen)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Seen], output: Tensor) -> None:
        """Keep the temperature and the bank as it was seen."""
        ctx.save_for_backward(inputs[1])
        ctx.seen = inputs[2]

    @staticmethod
    def backward(ctx: Any, x_dot: Tensor) -> tuple[Tensor, None, None]:
        """Return `x_dot @ memory.T / T`."""
        return apply_function(Product, x_dot, ctx.saved_tensors[0], ctx.seen), None, None


class Product(Function):
    """The map `x @ memory.T / T`, whose derivative is the transposed map."""

    @staticmethod
    def forward(x: Tensor, params: Tensor, seen: Seen) -> Tensor:
        """Return the product with the bank that was seen."""
        return _product(x, params, seen)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Seen], output: Tensor) -> None:
        """Keep the temperature and the bank as it was seen."""
        ctx.save_for_backward(inputs[1])
        ctx.seen = inputs[2]

    @staticmethod
    def backward(ctx: Any, y_bar: Tensor) -> tuple[Tensor, None, None]:
        """Return `y_bar @ memory / T`."""
        return transposed(y_bar, ctx.saved_tensors[0], ctx.seen), None, None


@torch.no_grad()
def move_rows(x: Tensor, y: Tensor, memory: Tensor, params: Tensor) -> None:
    """Move the rows `y` of the bank towards `x`, at once: `row <- normalize(momentum * row + (1 - momentum) * x)`.

    A row whose new norm is 0 (or not finite) keeps its old value. Of the embeddings that share a row, the last in
    the batch wins, computed from the old row.

    Args:
        x: shape (B, D).
        y: shape (B,), int64, between 0 and N - 1.
        memory: shape (N, D); it changes in place.
        params: `[T, momentum]`.
    """
    if y.shape[0] == 0:
        return
    # Wu et al., 2018, section 3.1, write the feature f_i to the bank's entry v_i after each step, both of length 1.
    # That is momentum 0 here; the momentum comes from their code, lemniscate.pytorch. Term by term, for each position b
    # of the batch, whose row is i = y_b, with mu = momentum:
    #   old_b = m_i                                  read for the whole batch before anything is written
    #   new_b = mu old_b + (1 - mu) x_b              lerp(x, old, mu) = x + mu (old - x)
    #   new_b = new_b / |new_b|                      back to length 1; not if |new_b| is 0, infinite or NaN
    #   m_i   = new_b for the last b with y_b = i    as if they were written in the order of the batch
    # Equal rows have equal old values, so no earlier b enters the value that stays.
    with without_autocast(memory):
        old = memory.index_select(0, y)
        # The norm of half types overflows, so it is computed in float32 there.
        wide = torch.promote_types(memory.dtype, torch.float32)
        # momentum * old + (1 - momentum) * x in one pass: at a thousand rows each more costs as much as its arithmetic.
        new = torch.lerp(x.detach().to(wide), old.to(wide), _share(params[1], memory, wide))
        norm = torch.linalg.vector_norm(new, dim=1, keepdim=True)
        new = new.div_(norm).to(memory.dtype)
        if not _all_positive(norm):
            new = torch.where((norm > 0) & (norm < torch.inf), new, old)
        if not _all_differ(y):
            # Each position gets the value of the last one that names its row: index_copy_ promises no order of writes.
            new = new[journal.last_of_each(y)]
    if _is_traced(memory):
        memory.index_copy_(0, y, new)  # traced: the version counter tells a graph that waits
    else:
        journal.write(memory, y, old, new)


def _share(momentum: Tensor, memory: Tensor, dtype: torch.dtype) -> Tensor | float:
    """Return the momentum as `lerp` takes it: a number where the host has it, whatever the device of the bank."""
    if momentum.device.type == "cpu" and not _is_traced(memory):
        return momentum.item()
    return momentum.to(dtype)


def _all_positive(norm: Tensor) -> bool:
    """Whether all are above 0 and finite; False where that is not known, as to read it would make the host wait."""
    if norm.device.type != "cpu" or _is_traced(norm):
        return False
    low, high = torch.aminmax(norm)  # NaN if one is
    return low.item() > 0 and high.item() < math.inf


def _all_differ(y: Tensor) -> bool:
    """Whether no row is named twice; False where that is not known."""
    return y.device.type == "cpu" and not _is_traced(y) and torch.unique(y, sorted=False).numel() == y.numel()


def _is_traced(tensor: Tensor) -> bool:
    return torch.compiler.is_compiling() or is_fake(tensor)
