"""Refuse a call on a memory bank that is wrong, before anything has changed, with what to write instead."""

from __future__ import annotations

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import is_fake

from gradspec.functions._sharded import is_dtensor
from gradspec.functions._torch import has_tangent, transforms_active


def check_call(call: str, x: Tensor, y: Tensor, memory: Tensor, params: Tensor) -> None:
    """Refuse arguments that do not fit each other; reads no value but those of `y`, and on a GPU not from the host.

    Args:
        call: how the call is written, for the messages.
        x: the embeddings.
        y: the row of each.
        memory: the bank.
        params: `[T, momentum]`.

    Raises:
        TypeError: an argument is not a tensor, `y` is not int64, or another one not floating.
        ValueError: a shape, dtype or device does not fit, or a gradient is asked for that does not flow.
        IndexError: a number in `y` is not a row of the bank. (On a GPU, an assertion of the device.)
    """
    check_forms(call, x, y, memory, params)
    check_constants(call, memory, params)
    check_rows(call, y, memory)


def check_forms(call: str, x: Tensor, y: Tensor, memory: Tensor, params: Tensor) -> None:
    """Refuse what shapes, dtypes and devices tell; arguments as for `check_call`."""
    for name, tensor in (("x", x), ("y", y), ("memory", memory), ("params", params)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{call}: {name} is a {type(tensor).__name__}, expected a tensor")
        if is_dtensor(tensor):
            raise TypeError(
                f"{call}: {name} is a DTensor. The logits of a sharded bank are on no rank: use LinearAverage.loss and "
                "update, which take the rows of this rank"
            )
        if name != "y" and not tensor.is_floating_point():
            raise TypeError(f"{call}: {name} has dtype {tensor.dtype}, expected a floating one")
    if memory.ndim != 2:
        raise ValueError(f"{call}: memory has shape {tuple(memory.shape)}, expected (N, D)")
    if x.ndim != 2 or x.shape[1] != memory.shape[1]:
        raise ValueError(
            f"{call}: x has shape {tuple(x.shape)} and memory {tuple(memory.shape)}; give x as (B, {memory.shape[1]})"
        )
    if x.dtype != memory.dtype and not torch.is_autocast_enabled(memory.device.type):
        raise ValueError(f"{call}: x is {x.dtype} and memory {memory.dtype}. Give x.to({memory.dtype})")
    if y.dtype != torch.int64:
        raise TypeError(f"{call}: y has dtype {y.dtype}, expected torch.int64. Give y.long()")
    if tuple(y.shape) != (x.shape[0],):
        raise ValueError(f"{call}: y has shape {tuple(y.shape)}; give one row for each of the {x.shape[0]} embeddings")
    if tuple(params.shape) != (2,):
        raise ValueError(f"{call}: params has shape {tuple(params.shape)}, expected (2,): [T, momentum]")
    for name, tensor in (("x", x), ("y", y)):
        if tensor.device != memory.device:
            raise ValueError(f"{call}: {name} is on {tensor.device} and memory on {memory.device}; move one of them")
    if params.device not in (memory.device, torch.device("cpu")):
        raise ValueError(f"{call}: params is on {params.device} and memory on {memory.device}; move one of them")


def check_constants(call: str, memory: Tensor, params: Tensor) -> None:
    """Refuse a bank or parameters that are differentiated; arguments as for `check_call`.

    Raises:
        ValueError: one requires grad or carries a tangent.
    """
    for name, tensor in (("memory", memory), ("params", params)):
        if tensor.requires_grad or has_tangent(tensor):
            raise ValueError(f"{call}: {name} is differentiated, and no gradient flows to it. Give {name}.detach()")


def check_rows(call: str, y: Tensor, memory: Tensor) -> None:
    """Refuse a number that is not a row of the bank; a traced call is checked when it runs.

    Args:
        call: how the call is written, for the messages.
        y: shape (B,).
        memory: shape (N, D).

    Raises:
        IndexError: a number in `y` is not a row of the bank. (On a GPU, an assertion of the device.)
    """
    if y.shape[0] == 0 or torch.compiler.is_compiling() or is_fake(y):
        return
    if y.device.type != "cpu":
        # To read a value would make the host wait for the device.
        inside = ((y >= 0) & (y < memory.shape[0])).all()
        torch._assert_async(inside, f"{call}: y holds a number outside 0 to {memory.shape[0] - 1}")
        return
    low, high = (int(value) for value in torch.aminmax(y))
    if low < 0 or high >= memory.shape[0]:
        wrong = low if low < 0 else high
        raise IndexError(f"{call}: y holds {wrong}, and the bank has {memory.shape[0]} rows; give 0 to N - 1")


def check_autograd(call: str, x: Tensor) -> None:
    """Refuse the transforms under which no backward pass would move the bank.

    Args:
        call: how the call is written, for the messages.
        x: the embeddings.

    Raises:
        RuntimeError: `torch.export`, a transform of `torch.func`, or forward mode is at work.
    """
    if torch.compiler.is_exporting():
        how = "torch.export, which keeps no backward pass. Export the module in evaluation mode: LinearAverage.eval()"
    elif transforms_active():
        how = "torch.func or torch.vmap, which have no backward pass. Use autograd, or LinearAverage.loss and update"
    elif has_tangent(x):
        how = "forward mode, which has no backward pass. Use autograd, or LinearAverage.loss and update"
    else:
        return
    raise RuntimeError(f"{call}: the bank moves at the end of a backward pass, and this call is under {how}")


def check_move(call: str) -> None:
    """Refuse the transforms under which nothing can be moved.

    Raises:
        RuntimeError: a transform of `torch.func` is at work.
    """
    if transforms_active():
        raise RuntimeError(f"{call}: a bank cannot move under torch.func or torch.vmap; move it outside")
