"""Capture of a call in a CUDA graph: warmed up on another stream, then recorded.

As https://docs.pytorch.org/docs/stable/notes/cuda.html#whole-network-capture says how to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from gradspec.laws.tensor.support._waiting import waiting_is_an_error

T = TypeVar("T")
#: How often a call runs before it is captured: libraries set themselves up at first, which no graph may hold.
WARM_UP = 3


class Capture(Protocol):
    """Run a call so that it can be replayed; return what it gave, in memory that a replay writes, and the replay."""

    def __call__(self, call: Callable[[], T], /) -> tuple[T, Callable[[], None]]: ...


def captured(call: Callable[[], T], /) -> tuple[T, Callable[[], None]]:
    """Capture a call on the current CUDA device; see `Capture`.

    A call that waits for the device raises before it is captured. If it raised within a capture, torch's generator of
    the device would stay in the state of a capture, and whatever draws next would raise.
    """
    current = torch.cuda.current_stream()
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch's own
    side.wait_stream(current)
    try:
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                call()
            with waiting_is_an_error():
                call()
        current.wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            static = call()
    finally:
        torch.cuda.set_stream(current)  # torch leaves the stream of a capture that fails
    return static, graph.replay


def each_once(tensor: Tensor) -> Tensor:
    """Return the view of a tensor that holds each number in memory once: an expanded one cannot be written to."""
    shown = zip(tensor.shape, tensor.stride(), strict=True)
    return tensor[tuple(slice(0, 1) if stride == 0 and size > 1 else slice(None) for size, stride in shown)]
