"""A call that is kept: its tensors copied, everything else as it is."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from gradspec._held import Holders, together

#: The bytes of a call above which its tensors are cut to a few rows of the batch.
WHOLE_BYTES = 4 * 2**20
#: The bytes above which nothing of a call is kept, once it is cut.
MOST_BYTES = 64 * 2**20
#: The first rows that are kept of the batch of a large call.
ROWS = 2
#: How many more are kept: those with the least and the greatest of its integers, as the one that a loss ignores.
MORE_ROWS = 2


class NotKeptError(Exception):
    """Why a call cannot be kept, in a few words."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Kept:
    """One call of a function."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    #: What it was, for a reader: "(float32[32, 64], 0.5)".
    text: str
    #: Whether only some rows of the batch were kept.
    is_cut: bool = False
    #: Whether all numbers of a floating tensor are equal, as those of a state before the first step: it shows little.
    is_flat: bool = False
    #: Whether a tensor of it requires a gradient: one in evaluation shows none that the program uses.
    trains: bool = False
    #: Whether its numbers are drawn: only a compiler saw it.
    is_drawn: bool = False


def kept(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Kept:
    """Copy a call.

    Raises:
        NotKeptError: an argument has no values to keep, or too many.
    """
    text = text_of(args, kwargs)
    with _aside():
        # What a module, a method or a closure holds of these goes with them: it runs with its own tensors.
        given = together((args, dict(kwargs)), _plain)
        whole = given
        if _bytes_of(given) > WHOLE_BYTES:
            given = few_rows(given)
            if (size := _bytes_of(given)) > MOST_BYTES:
                raise NotKeptError(f"its tensors have {size / 2**20:,.0f} MiB for a few rows of the batch")
        held = Holders(given)
        args, kwargs = held.each(_copied)
        is_flat = any(_is_flat(t) for t in held.given if id(t) not in held.own)
        trains = any(t.requires_grad for t in held.given)
    return Kept(args=args, kwargs=kwargs, text=text, is_cut=given is not whole, is_flat=is_flat, trains=trains)


def few_rows(call: Any) -> Any:
    """Return a call with a few rows of its batch, the first dimension of its largest tensor; itself if it has few.

    These are the first, and the rows with the least and the greatest of its integers, as the class that a loss ignores.
    What an object of the call holds too, as a module its parameters, stays whole.
    """
    held = Holders(call)
    free = [tensor for tensor in held.given if id(tensor) not in held.own]
    largest = max(free, key=Tensor.numel, default=None)
    if largest is None or not largest.dim() or largest.shape[0] <= ROWS + MORE_ROWS:
        return call
    batch = largest.shape[0]
    cut = {id(tensor) for tensor in free if tensor.dim() and tensor.shape[0] == batch}
    rows = list(range(ROWS))
    for tensor in free:
        if id(tensor) in cut and len(rows) == ROWS:
            rows += _telling(tensor)
    return held.each(lambda tensor: _only(sorted(set(rows)), tensor) if id(tensor) in cut else tensor)


def _telling(tensor: Tensor) -> list[int]:
    """Return the rows of a tensor of integers or of truth values that have its least and its greatest."""
    if tensor.is_floating_point() or tensor.is_complex() or tensor.device.type != "cpu" or not tensor.numel():
        return []  # a device would be waited for
    flat = tensor.detach().reshape(len(tensor), -1).to(torch.int64)
    low, high = flat.amin(1), flat.amax(1)
    return [int(low.argmin()), int(high.argmax())] if low.min() < high.max() else []


def _only(rows: list[int], tensor: Tensor) -> Tensor:
    """Return some rows of a tensor, its dimensions in memory in the order in which they are."""
    if rows == list(range(len(rows))):
        part = tensor.detach()[: len(rows)]
    else:
        order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
        moved = tensor.detach().permute(order)
        chosen = moved.index_select(order.index(0), torch.tensor(rows, device=tensor.device))
        part = chosen.permute([order.index(d) for d in range(len(order))])
    return part.requires_grad_(tensor.requires_grad)


def _bytes_of(call: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors_in(call))


def text_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Return a call for a reader: `(float32[32, 64], 0.5, training=True)`."""
    words = [_word(value) for value in args] + [f"{name}={_word(value)}" for name, value in kwargs.items()]
    return f"({', '.join(words)})"


def kind_of(value: Any) -> Any:
    """Return what two calls of one kind have in common: dtypes, ranks, layouts, options; not sizes or numbers."""
    if isinstance(value, Tensor):
        wrapped = torch._C._functorch.is_functorch_wrapped_tensor(value)
        strided = value.layout == torch.strided and not wrapped
        layout = value.is_contiguous() if strided else str(value.layout)
        return (value.dtype, value.dim(), value.requires_grad, layout, value.device.type, value.numel() == 0)
    if isinstance(value, tuple | list):
        return (type(value), *map(kind_of, value))
    if isinstance(value, dict):
        return (dict, *((name, kind_of(held)) for name, held in value.items()))
    if value is None or isinstance(value, bool | str | torch.dtype):
        return value
    return type(value)


def look_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return what tells quickly that two calls are of one kind and of the same sizes; None where nothing does."""
    if kwargs or torch._C._are_functorch_transforms_active():
        return None
    look: list[Any] = []
    for value in args:
        kind = type(value)
        if kind is Tensor or kind is torch.nn.Parameter:
            look += (value.dtype, value.shape, value.requires_grad, value.layout, value.device)
            if value.layout is torch.strided:
                look.append(value.is_contiguous())
        elif value is None or kind in (bool, str):
            look.append(value)
        elif kind in (int, float):
            look.append(kind)
        else:
            return None
    return tuple(look)


def shapes_of(value: Any) -> Any:
    """Return the sizes of all tensors of a call."""
    if isinstance(value, Tensor):
        return tuple(value.shape)
    if isinstance(value, tuple | list):
        return tuple(map(shapes_of, value))
    if isinstance(value, dict):
        return tuple(map(shapes_of, value.values()))
    return None


def values_of(value: Any) -> Any:
    """Return what two calls have in common in their numbers: options, and which tensors are all zero, one or of a sign.

    A start of zero, or a factor of one, hides what another one shows; and a function may keep an option for all calls.
    """
    if isinstance(value, Tensor):
        if not value.is_floating_point() or not value.numel() or value.device.type != "cpu":
            return None  # a device would be waited for
        with _aside():
            low, high = (float(t) for t in _plain(value).detach().double().aminmax())
        return _sign_of(low) if low == high else ""
    if isinstance(value, tuple | list):
        return tuple(map(values_of, value))
    if isinstance(value, dict):
        return tuple(map(values_of, value.values()))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return None


def is_there(cotangent: Any) -> bool:
    """Whether an output has a cotangent that is not 0, as far as that can be seen without waiting for a device."""
    if not _is_at_hand(cotangent):
        return cotangent is not None
    with _aside():
        return bool(cotangent.any())


def is_finite(tensors: tuple[Any, ...]) -> bool:
    """Whether all numbers of some tensors are, as far as that can be seen without waiting for a device.

    What overflows in float16 is no mistake: a scaled loss is scaled until it does. A mode of the program would see what
    is computed here, and a sum costs less than to look at each number.
    """
    if torch._C._len_torch_dispatch_stack() or torch._C._is_torch_function_mode_enabled():
        return True
    mine = [t for t in tensors if _is_at_hand(t) and t.dtype != torch.float16]
    return all(math.isfinite(abs(t.detach().sum().item())) or bool(t.isfinite().all()) for t in mine)


def _is_at_hand(value: Any) -> bool:
    """Whether a value is a plain tensor whose numbers are in the memory of this process."""
    is_plain = type(value) is Tensor and value.device.type == "cpu" and value.layout == torch.strided
    functorch = torch._C._functorch
    return (
        is_plain and not functorch.is_functorch_wrapped_tensor(value) and not functorch.is_legacy_batchedtensor(value)
    )


def _sign_of(number: float) -> float:
    return number if number in (0, 1, -1) else math.copysign(2, number)


def _word(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, tuple | list):
        inside = ", ".join(map(_word, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name!r}: {_word(held)}" for name, held in value.items()) + "}"
    if value is None or isinstance(value, bool | int | float | str | complex | torch.dtype | torch.device):
        shown = repr(value)
        return shown if len(shown) <= 40 else f"{shown[:37]}..."
    return f"<{type(value).__name__}>"


def mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return a value with the tensors inside of tuples, lists and dicts changed."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(held, change) for held in value))
    if type(value) in (tuple, list):
        return type(value)(mapped(held, change) for held in value)
    if type(value) is dict:
        return {name: mapped(held, change) for name, held in value.items()}
    return value


def tensors_in(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for held in value:
            yield from tensors_in(held)
    elif isinstance(value, dict):
        for held in value.values():
            yield from tensors_in(held)


def _plain(tensor: Tensor) -> Tensor:
    """Return the tensor with values below the wrappers of a transform: one example of what is batched."""
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        inner = functorch.get_unwrapped(tensor)
        if functorch.is_batchedtensor(tensor):
            inner = inner.select(functorch.maybe_get_bdim(tensor), 0)
        tensor = inner
    if isinstance(tensor, FakeTensor) or tensor.is_meta:
        raise NotKeptError("its tensors have no values: it is traced")
    if type(tensor) not in (Tensor, torch.nn.Parameter):
        raise NotKeptError(f"an argument is a {type(tensor).__name__}")
    if tensor.layout != torch.strided or tensor.is_quantized:
        raise NotKeptError(f"an argument is {str(tensor.layout).removeprefix('torch.')}")
    return tensor


def _is_flat(tensor: Tensor) -> bool:
    if not tensor.is_floating_point() or tensor.numel() < 2 or tensor.device.type != "cpu":
        return False  # a device would be waited for
    return bool((tensor == tensor.reshape(-1)[0]).all())


def _copied(tensor: Tensor) -> Tensor:
    copy = tensor.detach().clone()
    return copy.requires_grad_() if tensor.requires_grad else copy


@contextlib.contextmanager
def _aside() -> Iterator[None]:
    """No mode of the program sees what is done within, and no graph notes it."""
    from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
    from torch.utils._python_dispatch import _disable_current_modes

    with (
        temporarily_clear_interpreter_stack()
        if torch._C._are_functorch_transforms_active()
        else contextlib.nullcontext(),
        torch._C.DisableTorchFunction(),
        _disable_current_modes(),
        torch.inference_mode(mode=False),
        torch.no_grad(),
    ):
        yield
