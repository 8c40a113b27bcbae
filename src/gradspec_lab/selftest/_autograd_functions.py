"""The Functions that a spec is of: its own, and those that its module calls."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import torch

from gradspec.spec import FunctionSpec

#: What speaks with other ranks is in here, and what imports it is called over a mesh, by no case of a spec.
RANKS = "gradspec.functions._sharded"


def autograd_functions(spec: FunctionSpec) -> list[type]:
    """Return the Function of a spec, and those in the modules of ours that its module takes anything from.

    Those that are called over several ranks are left out: tests/distributed holds them.
    """
    own: Any = spec.autograd_function
    if own is None:
        return []
    homes = [module for module in _taken_from(own.__module__) if not _of_ranks(module)]
    found = [
        value
        for home in homes
        for value in vars(home).values()
        if isinstance(value, type) and issubclass(value, torch.autograd.Function) and value.__module__ == home.__name__
    ]
    return list(dict.fromkeys([own, *sorted(found, key=lambda cls: cls.__name__)]))


def _taken_from(name: str) -> list[ModuleType]:
    """Return a module, and those of gradspec whose functions, classes or names it holds, directly or not."""
    queue, found = [name], dict[str, ModuleType]()
    while queue:
        name = queue.pop()
        if name.startswith("gradspec.functions") and name in sys.modules and name not in found:
            found[name] = sys.modules[name]
            queue += {
                value.__name__ if isinstance(value, ModuleType) else str(getattr(value, "__module__", ""))
                for value in vars(found[name]).values()
            }
    return list(found.values())


def _of_ranks(module: ModuleType) -> bool:
    return any(getattr(value, "__module__", "").startswith(RANKS) for value in vars(module).values())
