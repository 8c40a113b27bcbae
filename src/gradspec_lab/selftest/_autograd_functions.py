"""The Functions that a spec is of: its own, and those that its module calls."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import torch

from gradspec._record import Source
from gradspec.spec import FunctionSpec

#: What speaks with other ranks is in here, and what imports it is called over a mesh, by no case of a spec.
RANKS = "gradspec.functions._sharded"


def autograd_functions(spec: FunctionSpec) -> list[type]:
    """Return the Function of a spec, and those in the modules that its module depends on.

    Those that are called over several ranks are left out: tests/distributed holds them.
    """
    own: Any = spec.autograd_function
    if own is None:
        return []
    files = {str(file) for file in Source(roots=(own.__module__,)).reached().files}
    homes = [m for m in list(sys.modules.values()) if str(getattr(m, "__file__", None)) in files and not _of_ranks(m)]
    found = [
        value
        for home in homes
        for value in vars(home).values()
        if isinstance(value, type) and issubclass(value, torch.autograd.Function) and value.__module__ == home.__name__
    ]
    return list(dict.fromkeys([own, *sorted(found, key=lambda cls: cls.__name__)]))


def _of_ranks(module: ModuleType) -> bool:
    return any(getattr(value, "__module__", "").startswith(RANKS) for value in vars(module).values())
