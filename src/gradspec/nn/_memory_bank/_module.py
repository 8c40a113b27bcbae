"""The memory bank of instance discrimination: one row for each instance of a data set."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from gradspec.functions import LinearAverageOp, instance_discrimination_loss
from gradspec.functions._linear_average._bank import logits, move_rows
from gradspec.functions._linear_average._checks import check_call, check_forms, check_move
from gradspec.functions._linear_average._shard_moves import move_shard_rows
from gradspec.functions._sharded import is_dtensor
from gradspec.nn._checks import check_positive
from gradspec.nn._memory_bank._checks import check_hyperparameters, faults_of
from gradspec.nn._memory_bank._shard import drawn_over, sharded_like

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh


class LinearAverage(nn.Module):
    r"""Compare embeddings with a memory bank that holds one row for each instance of a data set.

    .. math::

        o = x M^{\top} / T, \qquad
        m_{y_b} \leftarrow \frac{\mu\, m_{y_b} + (1 - \mu)\, x_b}{\lVert \mu\, m_{y_b} + (1 - \mu)\, x_b \rVert_2}

    Called in training mode, it returns the logits and moves the rows `y` at the end of the backward pass, as
    published. In evaluation mode it returns the logits and moves nothing. Prefer `loss`, which moves nothing and makes
    no logits, with `update`, which moves the rows at once and where the code says so.

    Args:
        inputSize: D, the features of an embedding.
        outputSize: N, the instances of the data set.
        T: the temperature, above 0.
        momentum: the share of the old row in the new one, between 0 and 1.
        mesh: the ranks that share the rows, of one dimension: each makes and holds only its own. `shard` deals out a
            bank that is there.

    Shape:
        embeddings (B, D) and rows (B,) to logits (B, N), in the dtype of the bank.

    Raises:
        TypeError: a size is not an integer, or T or momentum is not a number.
        ValueError: a size is below 1, T is not above 0, or momentum is not between 0 and 1.

    Example:
        >>> import torch
        >>> from gradspec.nn import LinearAverage
        >>> bank = LinearAverage(inputSize=3, outputSize=100, T=0.1)
        >>> x = torch.nn.functional.normalize(torch.randn(8, 3, requires_grad=True))
        >>> y = torch.arange(8)  # the number of each instance in the data set
        >>> bank.loss(x, y).backward()
        >>> bank.update(x, y)
        >>> bank.memory[:8].norm(dim=1).allclose(torch.ones(8))
        True

        The published form; the rows move once its backward pass is over:

        >>> x = torch.nn.functional.normalize(torch.randn(8, 3, requires_grad=True))
        >>> logits = bank(x, y)
        >>> logits.shape
        torch.Size([8, 100])
        >>> torch.nn.functional.cross_entropy(logits, y).backward()

    References:
        `Unsupervised Feature Learning via Non-Parametric Instance Discrimination
        <https://arxiv.org/abs/1805.01978>`_, Wu et al., 2018.
    """

    #: `[T, momentum]`.
    params: Tensor
    #: The bank, shape (N, D); before its first move, a row is uniform in a cube, and of norm 1 in the mean square.
    memory: Tensor

    def __init__(
        self,
        inputSize: int,  # noqa: N803 - the published name
        outputSize: int,  # noqa: N803
        T: float = 0.07,  # noqa: N803
        momentum: float = 0.5,
        *,
        mesh: DeviceMesh | None = None,
    ) -> None:
        super().__init__()
        check_positive("LinearAverage", inputSize=inputSize, outputSize=outputSize)
        check_hyperparameters("LinearAverage", T=T, momentum=momentum)
        self.register_buffer("params", torch.tensor([T, momentum], dtype=torch.get_default_dtype()))
        bound = 1 / math.sqrt(inputSize / 3)
        if mesh is None:
            memory = torch.rand(outputSize, inputSize).mul_(2 * bound).sub_(bound)
        else:
            memory = drawn_over(mesh, outputSize, inputSize, bound)
        self.register_buffer("memory", memory)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logits; in training mode, their backward pass moves the rows `y` when it ends.

        A sharded bank refuses it with a TypeError: its logits are on no rank.

        Args:
            x: shape (B, D), in the dtype of the bank; used as given, not normalised.
            y: shape (B,), int64: the row of each embedding. In evaluation mode its numbers are not looked at.

        Raises:
            TypeError: as `LinearAverageOp.apply`.
            ValueError: as `LinearAverageOp.apply`.
            IndexError: as `LinearAverageOp.apply`.
            RuntimeError: in training mode, as `LinearAverageOp.apply`.
        """
        if self.training:
            return LinearAverageOp.apply(x, y, self.memory, self.params)
        check_forms("LinearAverage", x, y, self.memory, self.params)
        return logits(x.to(self.memory.dtype), self.memory, self.params)

    def loss(self, x: Tensor, y: Tensor, reduction: str = "mean") -> Tensor:
        """Return the cross-entropy of the logits with the rows as classes, without making them; it moves nothing.

        It is the same in training and in evaluation mode, and works under every transform: it is
        `gradspec.functions.instance_discrimination_loss`. Of a sharded bank, every rank calls it with a batch of its
        own, in autograd only.

        Args:
            x: shape (B, D), in the dtype of the bank; used as given, not normalised.
            y: shape (B,), int64: the row of each embedding.
            reduction: "mean", "sum" or "none": over the batch.

        Returns:
            Shape (), or (B,) with `reduction="none"`.

        Raises:
            TypeError: as `instance_discrimination_loss`.
            ValueError: as `instance_discrimination_loss`.
            IndexError: as `instance_discrimination_loss`.
            RuntimeError: as `instance_discrimination_loss`, or in a double backward, the bank has moved since the
                forward pass.
        """
        return instance_discrimination_loss(x, y, self.memory, self.params[0], reduction=reduction)

    @torch.no_grad()
    def update(self, x: Tensor, y: Tensor) -> None:
        """Move the rows `y` towards `x`, at once, in training and in evaluation mode.

        A graph that is waiting for its backward pass keeps the gradient of its own forward pass. (In a compiled
        region it raises instead.) Of a sharded bank, every rank calls it with a batch of its own; the rows move as by
        one process on the batches of all ranks, in their order.

        Args:
            x: shape (B, D), in the dtype of the bank; no gradient flows from here.
            y: shape (B,), int64: the row of each embedding. Of those that share a row the last one wins.

        Raises:
            TypeError: as `LinearAverageOp.apply`.
            ValueError: as `LinearAverageOp.apply`.
            IndexError: as `LinearAverageOp.apply`.
            RuntimeError: the call is under a transform of `torch.func` or `torch.vmap`.
        """
        check_move("LinearAverage.update")
        if is_dtensor(self.memory):
            move_shard_rows("LinearAverage.update", x, y, self.memory, self.params)
            return
        check_call("LinearAverage.update", x, y, self.memory, self.params)
        move_rows(x, y, self.memory, self.params)

    def extra_repr(self) -> str:
        """Return the sizes, the temperature and the momentum."""
        rows, features = self.memory.shape
        return f"inputSize={features}, outputSize={rows}, T={self.params[0]:.4g}, momentum={self.params[1]:.4g}"

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        # torch copies one buffer, then refuses the next: a bank half loaded. So both are looked at first.
        if faults := faults_of(state_dict, prefix, self.memory):
            error_msgs.extend(faults)
            return
        if (whole := state_dict.get(prefix + "memory")) is not None and is_dtensor(self.memory):
            state_dict = {**state_dict, prefix + "memory": sharded_like(self.memory, whole)}
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )
