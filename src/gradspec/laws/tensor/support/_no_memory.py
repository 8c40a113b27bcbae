"""The substitute for `.data` of a batched tensor in the law batched_cotangent.

`.data` of a tensor in a batch of cotangents is a tensor that says that it is a batch, and is none: each operation on
it reads memory that is not there (torch 2.12 to 2.14). Most of the time the interpreter dies; it may also raise
something, or return numbers. The substitute has the shape and dtype, and stops the first operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from gradspec.laws.tensor.support._written import line_of_the_user


class NoMemoryError(Exception):
    """An operation on `.data` of a batched tensor."""

    def __init__(self, operation: str) -> None:
        super().__init__(operation)
        self.operation, self.line = operation, line_of_the_user()


class _NoMemory(Tensor):
    """A tensor of a shape and a dtype, without memory."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]  # torch's stub has no `cls`
        raise NoMemoryError(func.overloadpacket.__name__)

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        raise NoMemoryError("numpy")

    def tolist(self) -> Any:
        raise NoMemoryError("tolist")


@contextmanager
def without_data() -> Iterator[None]:
    """Let `.data` of a batched tensor be one that stops the first operation on it; of all others it stays."""
    own: Any = torch._C.TensorBase.data

    def data(tensor: Tensor) -> Tensor:
        read: Tensor = own.__get__(tensor)
        if not torch._C._functorch.is_legacy_batchedtensor(tensor):
            return read
        stand_in = Tensor._make_wrapper_subclass(_NoMemory, read.shape, dtype=read.dtype, device=read.device)
        torch._C._set_throw_on_mutable_data_ptr(stand_in)
        return stand_in

    Tensor.data = property(data, own.__set__, own.__delete__)  # type: ignore[assignment]  # found before the one of TensorBase
    try:
        yield
    finally:
        del Tensor.data
