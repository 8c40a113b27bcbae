"""Load one class of a file that cannot be imported: published modules import far more than the class needs."""

from __future__ import annotations

import ast
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
    scope |= {"torch": torch, "nn": torch.nn, "Tensor": torch.Tensor, "Function": torch.autograd.Function}
    exec(compile(alone, str(path), "exec"), scope)  # the file's own name and lines, so that a traceback points there
    loaded = scope[name]
    assert isinstance(loaded, type)
    return loaded
