"""The Functions behind a spec."""

from __future__ import annotations

import sys
from typing import Any

import torch

from gradspec._record import Source, reach_from
from gradspec.spec import FunctionSpec


def functions_behind(spec: FunctionSpec) -> list[type]:
    """Return the Function of a spec, and those in the modules that its module depends on."""
    own: Any = spec.autograd_function
    if own is None:
        return []
    files = {str(file) for file in Source(roots=(own.__module__,)).files(reach_from())}
    homes = [m for m in list(sys.modules.values()) if str(getattr(m, "__file__", None)) in files]
    found = [
        value
        for home in homes
        for value in vars(home).values()
        if isinstance(value, type) and issubclass(value, torch.autograd.Function) and value.__module__ == home.__name__
    ]
    return list(dict.fromkeys([own, *sorted(found, key=lambda cls: cls.__name__)]))
