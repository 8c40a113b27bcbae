"""Load published classes alone: the packages around them import far more than the classes need."""

from __future__ import annotations

import ast
import builtins
import pkgutil
import sys
from types import ModuleType
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from pathlib import Path


def cut(path: Path, name: str) -> type:
    """Return the class `name` of a Python file, executed alone with torch's names around it.

    Args:
        path: the file; nothing else in it runs.
        name: a class at the top level of the file.

    Raises:
        LookupError: the file has no such class.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    if name not in classes:
        raise LookupError(f"{path} has no class {name!r}; it has {', '.join(classes) or 'none'}")
    alone = ast.Module(body=[classes[name]], type_ignores=[])
    module = ModuleType(f"cut_out_of_{path.stem}")
    sys.modules[module.__name__] = module  # torch.compile imports the module of what it traces
    scope = vars(module)
    scope |= {"torch": torch, "nn": torch.nn, "Tensor": torch.Tensor}
    scope |= {"Function": torch.autograd.Function, "Variable": torch.autograd.Variable}
    builtins.exec(
        compile(alone, str(path), "exec"), scope
    )  # the file's own name and lines, so that a traceback points there
    loaded = scope[name]
    assert isinstance(loaded, type)
    return loaded


def alone(site: Path, path: str) -> ModuleType:
    """Import a module of `site` and what it imports beside it, without running the packages around it.

    Args:
        site: the folder that pip installed the package into.
        path: the module, by its import path; the packages above it stay empty, for as long as the process lives.

    Raises:
        ModuleNotFoundError: `site` has no such module.
    """
    parts = path.split(".")
    for depth in range(1, len(parts)):
        package = ModuleType(".".join(parts[:depth]))
        package.__path__ = [str(site.joinpath(*parts[:depth]))]
        sys.modules.setdefault(package.__name__, package)
    found: ModuleType = pkgutil.resolve_name(f"{path}:")
    return found
