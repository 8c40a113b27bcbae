"""LinearAverageOp: the logits of a batch against a memory bank, whose rows move after the backward pass."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import is_fake
from torch.autograd import Function

from gradspec.functions._linear_average import _bank as bank
from gradspec.functions._linear_average import _checks as checks
from gradspec.functions._linear_average import _pending as pending
from gradspec.functions._linear_average._journal import see
from gradspec.functions._torch import allow_in_graph, apply_in_place_of, keep_signature


@allow_in_graph
@keep_signature
class LinearAverageOp(Function):
    r"""Return the logits of embeddings against a memory bank, and move a row for each once its gradient is known.

    .. math::

        o = x M^{\top} / T, \qquad
        \bar{x} = \bar{o} M / T, \qquad
        m_{y_b} \leftarrow \frac{\mu\, m_{y_b} + (1 - \mu)\, x_b}{\lVert \mu\, m_{y_b} + (1 - \mu)\, x_b \rVert_2}

    The rows move once for each call whose backward pass runs, at the end of that pass. The gradient is that of the
    forward pass, whatever has moved since: the rows that a pending graph needs are kept, the bank is not copied.
    Where moves are to be seen in the code, `gradspec.nn.LinearAverage` has `update`.

    Example:
        >>> import torch
        >>> memory = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
        >>> params = torch.tensor([0.5, 0.5])  # temperature, momentum
        >>> x = torch.tensor([[0.6, 0.8]], requires_grad=True)
        >>> o = LinearAverageOp.apply(x, torch.tensor([1]), memory, params)
        >>> o.tolist()
        [[1.2000000476837158, 1.600000023841858, -1.2000000476837158]]
        >>> o.sum().backward()
        >>> x.grad
        tensor([[0., 2.]])
        >>> memory[1]  # (0, 1) has moved towards (0.6, 0.8), to norm 1
        tensor([0.3162, 0.9487])

    References:
        `Unsupervised Feature Learning via Non-Parametric Instance Discrimination
        <https://arxiv.org/abs/1805.01978>`_, Wu et al., 2018.
    """

    @classmethod
    def apply(cls, x: Tensor, y: Tensor, memory: Tensor, params: Tensor) -> Tensor:
        """Return the logits `x @ memory.T / T`; their backward pass moves the rows `y` of the bank.

        Args:
            x: shape (B, D), floating; used as given, not normalised.
            y: shape (B,), int64: the row of each embedding, 0 to N - 1.
            memory: shape (N, D), dtype and device of `x`. It changes in place at the end of the backward pass; no
                gradient flows to it. Under autocast `x` is cast to its dtype, and the logits have it too.
            params: `[T, momentum]`, floating; T above 0 and momentum between 0 and 1, which are not read here.

        Returns:
            The logits, shape (B, N), in the dtype of the bank.

        Raises:
            TypeError: an argument is not a tensor, `y` is not int64, or another one is not floating.
            ValueError: shapes, dtypes or devices do not fit, or the bank or `params` is differentiated.
            IndexError: `y` is not a row of the bank. On a GPU the device asserts it.
            RuntimeError: the call is under `torch.func`, `torch.vmap`, `torch.export` or forward mode; or, in the
                backward pass, something else has written to the bank.
        """
        call = "LinearAverageOp.apply"
        checks.check_call(call, x, y, memory, params)
        checks.check_autograd(call, x)
        if x.dtype != memory.dtype:
            x = x.to(memory.dtype)
        if not (x.requires_grad and torch.is_grad_enabled()):
            return cls.forward(x, y, memory, params)
        return cast(Tensor, apply_in_place_of(cls, x, y, memory, params))

    @staticmethod
    def forward(x: Tensor, y: Tensor, memory: Tensor, params: Tensor) -> Tensor:
        """Return `x @ memory.T / T`; torch calls it, users call `apply`."""
        return bank.logits(x, memory, params)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor, Tensor], output: Tensor) -> None:
        """Keep the embeddings, and the bank as it is now: not saved, for torch would then forbid every move."""
        x, y, memory, params = inputs
        if is_fake(memory):
            ctx.pending = None
            ctx.save_for_backward(x, y, params, pending.ticket(y, memory, torch.empty(0)))
        else:
            ctx.pending = pending.Pending(see(memory))
            ctx.save_for_backward(x, y, params)

    @staticmethod
    def backward(ctx: Any, gradOutput: Tensor) -> tuple[Tensor, None, None, None]:  # noqa: N803 - the published name
        """Return `gradOutput @ memory / T` for `x`, and leave the move to the end of the backward pass."""
        x, y, params, *tickets = ctx.saved_tensors
        if ctx.pending is None:
            return pending.backward(gradOutput, x, y, params, *tickets), None, None, None
        x_bar = bank.transposed(gradOutput, params, ctx.pending.seen)
        ctx.pending.after_backward(x, y, params, ctx)
        return x_bar, None, None, None
