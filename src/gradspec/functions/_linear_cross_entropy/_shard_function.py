"""The loss of one rank's rows against a weight whose rows are spread over the ranks."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from torch.autograd import Function

from gradspec.functions._linear_cross_entropy._by_class import by_class, by_class_of
from gradspec.functions._linear_cross_entropy._logits import Point, working
from gradspec.functions._linear_cross_entropy._shard_values import shard_values
from gradspec.functions._sharded import Batch, gathered
from gradspec.functions._torch import apply_function, without_autocast


class Layout(NamedTuple):
    """The layout of one call, the same on all ranks."""

    #: The name of the call, for messages.
    call: str
    batch: Batch
    #: The class of the first row of the shard of this rank.
    first: int
    #: How many classes there are on all ranks.
    classes: int
    #: Whether a rank asks for the gradient by x.
    of_rows: bool


class ShardedLoss(Function):
    """The loss of each row of this rank; its backward pass communicates only for the weight and the bias."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        margin: Tensor | None,
        target: Tensor,
        counted: Tensor,
        point: Point,
        layout: Layout,
    ) -> Tensor:
        """Return the loss.

        Args:
            ctx: where torch keeps things.
            x: the rows of this rank.
            weight: its shard.
            bias: that of its shard.
            margin: of its rows.
            target: the classes of all rows, from the first of the shard.
            counted: which of them count.
            point: the options of the call.
            layout: where the rows are.
        """
        batch = layout.batch
        every = point._replace(
            x=gathered(batch, x),
            weight=weight,
            target=target,
            bias=bias,
            margin=None if margin is None else gathered(batch, margin),
            ignore_index=None,
        )
        with without_autocast(x):
            _, of_weight, of_bias, *_ = ctx.needs_input_grad
            options = {"of_rows": layout.of_rows, "keep": of_weight or of_bias}
            found = shard_values(every.widened(), counted, batch, layout.classes, **options)
        # The rows of all ranks are read again for the gradient by the weight, and only for it.
        again: tuple[Tensor | None, ...] = ()
        if of_weight or of_bias:
            logits = (every.margin, weight, bias, target, found.log_sum_exp) if found.by_logit is None else (None,) * 5
            again = (every.x, found.by_logit, *logits)
        temperature = point.temperature if isinstance(point.temperature, Tensor) else None
        gradient = None if found.gradient is None else found.gradient.to(x.dtype)
        # What is differentiated, so that a second derivative finds its way to a refusal.
        inputs = [value for value, asked in zip((x, weight, bias, margin), ctx.needs_input_grad, strict=False) if asked]
        ctx.save_for_backward(gradient, found.own_slope, counted, temperature, *again, *inputs)
        ctx.temperature = None if isinstance(point.temperature, Tensor) else point.temperature
        ctx.label_smoothing, ctx.layout = point.label_smoothing, layout
        return found.loss.to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients; those by the weight and the bias are of the mean over the ranks of their losses."""
        gradient, own_slope, counted, temperature, *rest = ctx.saved_tensors
        layout, temperature = ctx.layout, ctx.temperature if temperature is None else temperature
        of_x, of_weight, of_bias, of_margin, *_ = ctx.needs_input_grad
        # The mean over no row has a cotangent of inf, and a row that does not count gets zeros all the same.
        by_row = torch.where(counted[layout.batch.own], grad_output, 0)
        x_bar = weight_bar = bias_bar = margin_bar = None
        with torch.no_grad(), without_autocast(grad_output):
            if of_x:
                x_bar = by_row.unsqueeze(1) * gradient
            if of_margin:
                margin_bar = (-working(by_row) * own_slope / temperature).to(grad_output.dtype)
            if of_weight or of_bias:
                x, by_logit, margin, weight, bias, target, log_sum_exp, *_ = rest
                of_all = working(gathered(layout.batch, by_row)) / layout.batch.ranks.size / temperature
                if by_logit is not None:
                    weight_bar, bias_bar = by_class_of(by_logit, x, of_all, of_weight, of_bias)
                else:
                    every = Point(x, weight, target, bias, margin, temperature, None, ctx.label_smoothing)
                    weight_bar, bias_bar = by_class(every, of_all, log_sum_exp, of_weight, of_bias, layout.classes)
        found, none = (x_bar, weight_bar, bias_bar, margin_bar), (None,) * 4
        if torch.is_grad_enabled():
            inputs = rest[-sum(ctx.needs_input_grad) :]
            return *(None if bar is None else _final(layout.call, bar, grad_output, *inputs) for bar in found), *none
        return *found, *none


def _final(call: str, gradient: Tensor, *of: Tensor) -> Tensor:
    return apply_function(Final, call, gradient, *of)


class Final(Function):
    """A gradient that has no derivative: it refuses one, rather than giving zeros."""

    @staticmethod
    def forward(ctx: Any, call: str, gradient: Tensor, *of: Tensor) -> Tensor:
        """Return the gradient, which depends on what follows it."""
        ctx.call = call
        return gradient.clone()

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        """Refuse.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(
            f"{ctx.call}: a second derivative is asked for, and over a mesh there is none. Call it without a mesh, on "
            "the whole weight"
        )


def sharded_rows(x: Tensor, target: Tensor, counted: Tensor, point: Point, layout: Layout) -> Tensor:
    """Return the loss of each row of this rank.

    Args:
        x: the rows of this rank, shape (B, D).
        target: the classes of the rows of all ranks, padded, as numbers of the shard's rows.
        counted: which of these rows count.
        point: the call of this rank, its weight and its bias those of the shard.
        layout: where the rows of all ranks are.
    """
    loss = ShardedLoss.apply(x, point.weight, point.bias, point.margin, target, counted, point, layout)  # type: ignore[no-untyped-call]
    return cast(Tensor, loss)
