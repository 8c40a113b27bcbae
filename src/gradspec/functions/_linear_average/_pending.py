"""The move that each forward pass of a memory bank leaves to its backward pass, in eager mode and in a compiled graph.

A compiled graph holds only tensors, so there a ticket represents the move: a tensor whose memory is a Python object
that carries it. torch keeps the object for as long as the graph keeps the tensor, and no longer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from gradspec.functions._linear_average._bank import move_rows, transposed
from gradspec.functions._linear_average._checks import check_rows
from gradspec.functions._linear_average._journal import Seen, see
from gradspec.functions._torch import frees_graph, queue_callback


@dataclass(eq=False, slots=True)
class Pending:
    """A pending forward pass: the rows that it saw, and whether its move has been made."""

    #: None once the graph of the forward pass has been freed.
    seen: Seen | None
    moved: bool = False

    def after_backward(self, x: Tensor, y: Tensor, params: Tensor, ctx: Any = None) -> None:
        """Move the rows at the end of the backward pass that is running, if it succeeds and it is the first one.

        Args:
            x: the embeddings of the forward pass.
            y: the row of each.
            params: `[T, momentum]`.
            ctx: the node of the forward pass; once it is freed, what it saw is let go.
        """
        assert self.seen is not None, "autograd has refused to run a graph that it has freed"
        memory = self.seen.memory
        frees = ctx is not None and frees_graph()

        def finish() -> None:
            if frees:
                self.seen = None
            if not self.moved:
                self.moved = True
                move_rows(x, y, memory, params)

        queue_callback(finish)


class Ticket(bytearray):
    """The memory of a tensor that represents a pending move in a compiled graph."""

    pending: Pending


_TICKETS: WeakValueDictionary[int, Ticket] = WeakValueDictionary()


@torch.library.custom_op("gradspec::linear_average_ticket", mutates_args=())
def ticket(y: Tensor, memory: Tensor, apart: Tensor) -> Tensor:
    """Return a tensor that represents the move of a forward pass through a compiled graph.

    Args:
        y: the row of each embedding, checked here because tracing cannot.
        memory: the bank.
        apart: an empty tensor of its own for each call, so that a compiler does not take two calls for one.
    """
    check_rows("LinearAverageOp.apply", y, memory)
    carrier = Ticket(8)
    carrier.pending = Pending(see(memory))
    token = torch.frombuffer(carrier, dtype=torch.uint8)
    _TICKETS[token.data_ptr()] = carrier
    return token


@ticket.register_fake
def _(y: Tensor, memory: Tensor, apart: Tensor) -> Tensor:
    return torch.empty(8, dtype=torch.uint8, device="cpu")


@torch.library.custom_op("gradspec::linear_average_backward", mutates_args=())
def backward(y_bar: Tensor, x: Tensor, y: Tensor, params: Tensor, token: Tensor) -> Tensor:
    """Return the gradient of `x` in a compiled graph, and leave the move to the end of the backward pass.

    Args:
        y_bar: the cotangent of the logits, shape (B, N).
        x: shape (B, D).
        y: shape (B,).
        params: `[T, momentum]`.
        token: the ticket of the forward pass.
    """
    pending = _TICKETS[token.data_ptr()].pending
    assert pending.seen is not None, "a ticket dies with its graph"
    pending.after_backward(x, y, params)
    return transposed(y_bar, params, pending.seen)


@backward.register_fake
def _(y_bar: Tensor, x: Tensor, y: Tensor, params: Tensor, token: Tensor) -> Tensor:
    return x.new_empty(x.shape)  # a product has strides of its own, whatever those of x
