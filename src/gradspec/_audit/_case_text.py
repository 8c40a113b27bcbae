"""A case as the Python text that makes it: the call as its author wrote it, or its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from gradspec._audit._case_syntax import in_dtype
from gradspec.laws.tensor.support._call import differentiable
from gradspec.spec import Case

#: The most elements of a tensor that is written out.
_WRITTEN_OUT = 24


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
        args = [argument_text(value) for value in case.args]
        kwargs = ", ".join(f"{name!r}: {argument_text(value)}" for name, value in case.kwargs.items())
        shown = f"({', '.join(args)}{',' if len(args) == 1 else ''})"
        return f"Case(name={case.name!r}, args={shown}{f', kwargs={{{kwargs}}}' if kwargs else ''})"
    cast = text if dtype is None else in_dtype(text, str(dtype).removeprefix("torch."))
    options = [repr(cast)]
    if cast != name_in_text(case, written, dtype):
        options.append(f"name={case.name!r}")  # the text has other blanks
    if seed:
        options.append(f"seed={seed}")
    return f"read_case({', '.join(options)})"


def name_in_text(case: Case, written: Mapping[str, str], dtype: torch.dtype | None) -> str:
    """Return the name of a case in the text that makes it: that of the recipe with the dtype that took its place."""
    text = written.get(case.name)
    return case.name if text is None or dtype is None else in_dtype(text, str(dtype).removeprefix("torch."))


def argument_text(value: Any) -> str:
    """Return an expression that makes an argument; a large tensor is drawn anew."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {argument_text(item)}' for key, item in value.items())}}}"
    if type(value) in (list, tuple):
        inner = ", ".join(map(argument_text, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
    if not isinstance(value, Tensor):
        return repr(value)
    if 0 < value.numel() <= _WRITTEN_OUT and value.isfinite().all():
        return f"torch.tensor({value.tolist()!r}, dtype={value.dtype})"
    dtype = "" if value.dtype == torch.float64 else f"dtype={value.dtype}"
    text = f"make({', '.join(filter(None, [*map(str, value.shape), dtype]))})"
    if differentiable(value) or value.dtype == torch.bool or not value.numel() or int(value.min()) < 0:
        return text
    return f"{text}.remainder({int(value.max()) + 1})"  # an index stays within what it points into
