"""A call in a file: its tensors as safetensors, the rest as JSON in the header; nothing in it is ever executed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

#: The name under which the header has the call.
HEADER = "gradspec.call"
#: The name under which it has which tensors are complex, written as pairs.
COMPLEX = "gradspec.complex"
_DTYPES = {str(value).removeprefix("torch."): value for value in vars(torch).values() if isinstance(value, torch.dtype)}


class CallError(ValueError):
    """A file that holds no call, or a call that no file can hold; the message is one line for the user."""


def save_call(path: Path, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, of: str) -> None:
    """Write a call to a file.

    Args:
        path: of the file, which is replaced.
        args: what is given by position: tensors, numbers, strings, None, dtypes, devices; and tuples, lists and dicts
            of these.
        kwargs: what is given by name.
        of: what is called: "package.module:Name".

    Raises:
        CallError: an argument is anything else.
    """
    tensors: dict[str, Tensor] = {}
    call = {"of": of, "args": _written(args, tensors), "kwargs": _written(dict(kwargs), tensors)}
    text = json.dumps(call)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Of complex numbers safetensors writes some, and their parts as real ones always.
    pairs = {name: torch.view_as_real(_plain(t)) if t.is_complex() else _plain(t) for name, t in tensors.items()}
    told = {HEADER: text, COMPLEX: json.dumps([name for name, t in tensors.items() if t.is_complex()])}
    try:
        save_file(pairs, path, metadata={**told, "sha256": _digest(text, tensors)})
    except (KeyError, SafetensorError) as error:
        raise CallError(f"no file of a call can hold its tensors: {error}") from None


def load_call(path: Path) -> tuple[tuple[Any, ...], dict[str, Any], str]:
    """Return the call that a file holds, by position and by name, and what is called.

    Its tensors are on the devices on which they were saved, and on the CPU where there is no such device.

    Raises:
        CallError: there is no such file, or it was cut off, edited, or is of another kind.
    """
    try:
        with safe_open(path, framework="pt") as held:
            header = held.metadata() or {}
            tensors = {name: held.get_tensor(name) for name in held.keys()}  # noqa: SIM118
        text = header[HEADER]
        tensors |= {name: torch.view_as_complex(tensors[name]) for name in json.loads(header.get(COMPLEX, "[]"))}
        if header.get("sha256") != _digest(text, tensors):
            raise CallError(f"{path} was edited: its numbers are not those that were saved")
        call = json.loads(text)
        return tuple(_read(call["args"], tensors)), dict(_read(call["kwargs"], tensors)), str(call["of"])
    except FileNotFoundError:
        raise CallError(f"there is no file {path}") from None
    except (SafetensorError, OSError) as error:
        raise CallError(f"{path} is not a saved call, or was cut off: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise error if isinstance(error, CallError) else CallError(f"{path} holds no call of gradspec") from None


def _written(value: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, Tensor):
        known = next((name for name, held in tensors.items() if held is value), None)
        name = known or str(len(tensors))
        tensors[name] = value
        there = {} if value.device.type == "cpu" else {"device": str(value.device)}
        return {"tensor": name, "requires_grad": value.requires_grad, "order": _order(value), **there}
    if value is None or isinstance(value, bool | int | str):
        return {"value": value}
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, complex):
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if type(value) in (tuple, list, torch.Size):
        return {"list" if type(value) is list else "tuple": [_written(held, tensors) for held in value]}
    if type(value) is dict and all(isinstance(name, str) for name in value):
        return {"dict": {name: _written(held, tensors) for name, held in value.items()}}
    raise CallError(f"a {type(value).__name__} cannot be written to a file of a call")


def _read(written: Any, tensors: dict[str, Tensor]) -> Any:
    (kind, held), *more = written.items()
    match kind:
        case "tensor":
            options = dict(more)
            order, made = options["order"], f"{held} made"
            if made not in tensors:  # the same tensor may be given twice
                tensors[made] = tensors[held].permute(order).contiguous().permute(_inverse(order))
                tensors[made] = tensors[made].to(_here(options.get("device", "cpu")))
                tensors[made].requires_grad_(options["requires_grad"])
            return tensors[made]
        case "value":
            return held
        case "float":
            return float.fromhex(held)
        case "complex":
            return complex(*map(float.fromhex, held))
        case "dtype":
            return _DTYPES[held]
        case "device":
            return torch.device(held)
        case "tuple" | "list":
            return (tuple if kind == "tuple" else list)(_read(one, tensors) for one in held)
        case "dict":
            return {name: _read(one, tensors) for name, one in held.items()}
    raise KeyError(kind)


def _here(device: str) -> torch.device:
    """Return a device; the first of its kind where it has another number here, and the CPU where there is none."""
    kind, _, number = device.partition(":")
    if kind != "cuda" or not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device(kind, int(number or 0) if int(number or 0) < torch.cuda.device_count() else 0)


def _plain(tensor: Tensor) -> Tensor:
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def _order(tensor: Tensor) -> list[int]:
    """Return the dimensions of a tensor in the order in which memory holds them."""
    strides = tensor.stride()
    return sorted(range(tensor.dim()), key=lambda place: (-strides[place], place))


def _inverse(order: list[int]) -> list[int]:
    return sorted(range(len(order)), key=order.__getitem__)


def _digest(text: str, tensors: Mapping[str, Tensor]) -> str:
    found = hashlib.sha256(text.encode())
    for name, tensor in sorted(tensors.items()):
        plain = _plain(tensor).cpu().reshape(-1)
        found.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        found.update(plain.view(torch.uint8).numpy().tobytes() if plain.numel() else b"")
    return found.hexdigest()
