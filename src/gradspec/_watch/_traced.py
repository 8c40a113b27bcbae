"""A call that only a compiler sees: with the numbers of its tensors that it has, and with drawn ones for the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gradspec._watch._kept import MORE_ROWS, ROWS, WHOLE_BYTES, Kept, NotKeptError, kept

#: What the numbers are drawn of: a function that is not defined below 0 shows nothing of the first.
_DRAWN: tuple[Callable[..., Tensor], ...] = (torch.randn, torch.rand)


def traced(variables: Sequence[Any]) -> list[Kept]:
    """Return a call with the arguments that Dynamo traces, once with each kind of numbers.

    What is computed within the graph has sizes and a dtype and no numbers: these are drawn, of a generator of its own.
    Integers are 0 and 1, which may be indices.

    Raises:
        NotKeptError: an argument is neither a tensor nor a constant.
    """
    batch = _batch_of(variables)
    calls = []
    for draw in _DRAWN:
        generator = torch.Generator().manual_seed(0)
        call = kept(tuple(_argument(variable, draw, generator, batch) for variable in variables), {})
        calls.append(replace(call, text=f"{call.text}, drawn", is_drawn=True))
    return calls


def _argument(variable: Any, draw: Callable[..., Tensor], generator: torch.Generator, batch: int | None) -> Any:
    if variable.is_tensor():
        return _tensor(variable, draw, generator, batch)
    if variable.is_python_constant():
        return variable.as_python_constant()
    if isinstance(items := getattr(variable, "items", None), list):
        return variable.python_type()(_argument(one, draw, generator, batch) for one in items)
    hint = getattr(getattr(getattr(variable, "sym_num", None), "node", None), "hint", None)
    if hint is None:
        raise NotKeptError(f"a compiler traced it with a {type(variable).__name__.removesuffix('Variable')}")
    return hint


def _tensor(variable: Any, draw: Callable[..., Tensor], generator: torch.Generator, batch: int | None) -> Tensor:
    node = variable.as_proxy().node
    like = node.meta["example_value"]
    given = getattr(node.meta.get("grapharg"), "example", None)
    if isinstance(given, Tensor):
        return given
    size = _size(like)
    if size and size[0] == batch:
        size[0] = min(batch, ROWS + MORE_ROWS)
    if like.is_floating_point() or like.is_complex():
        wide = like.dtype if like.dtype.is_complex else torch.float64
        made = draw(size, dtype=wide, generator=generator).to(like.dtype)
    else:
        made = torch.randint(0, 2, size, generator=generator).to(like.dtype)
    return made.to(like.device).requires_grad_(like.requires_grad)


def _batch_of(variables: Sequence[Any]) -> int | None:
    """Return the first size of the largest argument, if there is too much of it to keep; else None."""
    tensors = [variable.as_proxy().node.meta["example_value"] for variable in variables if variable.is_tensor()]
    sizes = [(_size(one), one.element_size()) for one in tensors]
    largest = max((size for size, _ in sizes), key=lambda size: torch.Size(size).numel(), default=[])
    total = sum(torch.Size(size).numel() * bytes_ for size, bytes_ in sizes)
    return largest[0] if largest and total > WHOLE_BYTES else None


def _size(like: Tensor) -> list[int]:
    """Return the sizes of a tensor, where they are symbols those that were seen."""
    return [one if isinstance(one, int) else int(one.node.hint) for one in like.shape]
