"""A case as the Python text that makes it: the call as its author wrote it, or its tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from gradspec._audit._case_syntax import in_dtype
from gradspec.laws.tensor.support._call import differentiable
from gradspec.spec import Case

#: The most elements of a tensor that is written out.
_WRITTEN_OUT = 24
#: What stands for a value that no expression makes.
_UNKNOWN = "..."
#: Where a spec makes the tensors of its cases: on the device that is asked for.
_THERE = "device=make.device"


def case_text(case: Case, written: Mapping[str, str], *, seed: int = 0, dtype: torch.dtype | None = None) -> str:
    """Return an expression that makes a case.

    Args:
        case: the case.
        written: the calls as text, by the name of the case.
        seed: of the tensors that these draw.
        dtype: what their floating tensors were cast to.
    """
    text = written.get(case.name)
    if text is None:
        args, kwargs = arguments_text(case)
        return f"Case(name={case.name!r}, args={args}{f', kwargs={{{kwargs}}}' if kwargs else ''})"
    cast = text if dtype is None else in_dtype(text, str(dtype).removeprefix("torch."))
    options = [repr(cast)]
    if cast != name_in_text(case, written, dtype):
        options.append(f"name={case.name!r}")  # the text has other blanks
    if seed:
        options.append(f"seed={seed}")
    if any(isinstance(leaf, Tensor) and leaf.is_cuda for leaf in tree_leaves((case.args, dict(case.kwargs)))):
        options.append(_THERE)
    return f"read_case({', '.join(options)})"


def arguments_text(case: Case) -> tuple[str, str]:
    """Return expressions that make the positional arguments of a case, and the items of its keyword arguments."""
    kwargs = ", ".join(f"{name!r}: {argument_text(value)}" for name, value in case.kwargs.items())
    return argument_text(tuple(case.args)), kwargs


def name_in_text(case: Case, written: Mapping[str, str], dtype: torch.dtype | None) -> str:
    """Return the name of a case in the text that makes it: that of the recipe with the dtype that took its place."""
    text = written.get(case.name)
    return case.name if text is None or dtype is None else in_dtype(text, str(dtype).removeprefix("torch."))


def argument_text(value: Any) -> str:
    """Return an expression that makes an argument.

    It makes the same value, or else `why_inexact` says what another one it makes: a large tensor is drawn again.
    """
    if type(value) is dict:
        return f"{{{', '.join(f'{argument_text(key)}: {argument_text(item)}' for key, item in value.items())}}}"
    if type(value) in (list, tuple):
        inner = ", ".join(map(argument_text, value))
        return f"[{inner}]" if type(value) is list else f"({inner}{',' if len(value) == 1 else ''})"
    if isinstance(value, Tensor):
        return _tensor_text(value) if value.layout == torch.strided else _UNKNOWN
    if type(value) is float:
        return _number_text(value)
    if isinstance(value, torch.dtype):
        return str(value)
    if isinstance(value, torch.device):
        return f"torch.device({str(value)!r})"
    is_literal = value is None or value is ... or type(value) in (bool, int, complex, str, bytes, range, slice)
    return repr(value) if is_literal else _UNKNOWN


def why_inexact(value: Any) -> str:
    """Return how what the text makes differs from an argument; nothing where it makes the same."""
    if type(value) is dict:
        return next(filter(None, map(why_inexact, (*value, *value.values()))), "")
    if type(value) in (list, tuple):
        return next(filter(None, map(why_inexact, value)), "")
    if isinstance(value, Tensor) and value.layout == torch.strided:
        if not _exact_text(value):
            return "drawn anew"
        return "" if value.is_contiguous() else "written as a contiguous tensor"
    return f"of {type(value).__name__}, and not written" if argument_text(value) == _UNKNOWN else ""


def _tensor_text(value: Tensor) -> str:
    if text := _exact_text(value):
        return text
    options = [*map(str, value.shape), "" if value.dtype == torch.float64 else f"dtype={value.dtype}"]
    if value.dtype == torch.bool or value.is_complex():
        return _made(*options)
    if not differentiable(value):  # an index stays within what it points into
        return _made(*options, f"low={int(value.min())}", f"high={int(value.max())}")
    least, most = float(value.min()), float(value.max())
    if (least < -1 and most > 1) or not math.isfinite(most - least):
        return _made(*options)
    # Within the numbers that were given: many a function has no value elsewhere.
    return f"({_made(*options)}.sigmoid() * {most - least:.6g} + {least:.6g})"


def _exact_text(value: Tensor) -> str:
    """Return an expression that makes the same numbers; empty where these are too many."""
    if not value.numel():
        return _made(*map(str, value.shape), "" if value.dtype == torch.float64 else f"dtype={value.dtype}")
    there = f", {_THERE}" if value.is_cuda else ""
    if value.numel() <= _WRITTEN_OUT:
        return f"torch.tensor({_number_text(value.tolist())}, dtype={value.dtype}{there})"
    first = value.flatten()[0]
    if not bool((value == first).all()):
        return ""
    return f"torch.full({tuple(value.shape)}, {_number_text(first.item())}, dtype={value.dtype}{there})"


def _made(*options: str) -> str:
    return f"make({', '.join(filter(None, options))})"


def _number_text(value: Any) -> str:
    """Return numbers in nested lists as an expression; infinities and NaN have no literal."""
    if isinstance(value, list):
        return f"[{', '.join(map(_number_text, value))}]"
    if isinstance(value, complex):
        return f"complex({_number_text(value.real)}, {_number_text(value.imag)})"
    return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
