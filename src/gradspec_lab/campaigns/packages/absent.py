"""Leave out what a package imports and a program does not need.

A program calls it first: for packages that are large, need a device, or have no wheel, and for an `__init__` that
imports the whole of its package.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from pathlib import Path


class _Any(type):
    """The class of empty classes: each has every attribute."""

    def __getattr__(cls, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return _empty(name)


def _empty(name: str) -> type:
    """Return a class that takes any arguments; an instance is called as a decorator, and returns what it is given."""
    return _Any(name, (), {"__init__": lambda *_, **__: None, "__call__": lambda _, *args, **__: (args or (None,))[0]})


class _Empty(types.ModuleType):
    """A module that has every name: each is an empty class."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return _empty(name)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names: Sequence[str]) -> None:
        self.names = frozenset(names)

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] not in self.names:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Empty(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def absent(*names: str) -> None:
    """Let modules of these names, and all below them, be empty."""
    sys.meta_path.insert(0, _Finder(names))


def bare(*names: str) -> None:
    """Let packages of these names be folders only: what their `__init__` files say is not run."""
    for name in names:
        places = [Path(path, *name.split(".")) for path in sys.path]
        module = types.ModuleType(name)
        module.__path__ = [str(place) for place in places if place.is_dir()]
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        module.__spec__.submodule_search_locations = module.__path__
        sys.modules[name] = module
