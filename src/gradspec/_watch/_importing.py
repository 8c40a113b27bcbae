"""How another process comes to a function that one has seen: by import, or as the script that it is in."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import sys
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from gradspec._watch._seen import Seen
from gradspec._watch._uses import MAIN
from gradspec.spec._schema import overload_of


def home_of(seen: Seen) -> str:
    """Return the place of a Function in the process that has it, "package.module:Name"; empty if it has none there."""
    if seen.is_operator:
        return seen.key
    cls = seen.target
    return f"{cls.__module__}:{cls.__qualname__}" if _found(cls.__module__, cls.__qualname__) is cls else ""


def importable(seen: Seen) -> str:
    """Return the path by which another process imports a Function: "package.module:Name", or "train.py:Name".

    It is empty if none can: it is made by a call, or in a script that does more than to define when it is imported.
    """
    if seen.is_operator or not (home := home_of(seen)):
        return ""
    module, _, name = home.partition(":")
    if module not in MAIN:
        return home
    file = getattr(sys.modules[module], "__file__", None)
    if not file or not only_defines(str(file)):
        return ""
    run_as = getattr(sys.modules[module], "__spec__", None)  # by python -m: it may import what is beside it
    return f"{run_as.name if run_as else Path(file).absolute()}:{name}"


def modules_of_the_program() -> list[str]:
    """Return what this process has imported beside Python and torch, in that order; one registers an operator."""
    given = {*sys.stdlib_module_names, *MAIN, "torch", "gradspec"}
    return [name for name in list(sys.modules) if name.partition(".")[0] not in given]


def registered(key: str, modules: list[str]) -> Any:
    """Return an operator, once what registers it is imported.

    Raises:
        ValueError: none of the modules does.
    """
    for name in modules:
        with contextlib.suppress(ValueError):
            return overload_of(key)
        with contextlib.suppress(Exception):  # what the program came over
            import_module(name)
    return overload_of(key)


@lru_cache(maxsize=8)
def only_defines(file: str) -> bool:
    """Whether a script does nothing when it is imported but to define, so that importing it runs no program."""
    try:
        body = ast.parse(Path(file).read_text(encoding="utf-8")).body
    except (OSError, SyntaxError, ValueError):
        return False
    return all(map(_defines, body))


def resolved(path: str) -> Any:
    """Return what a path names, imported now, or what a script of this name defines.

    Raises:
        Exception: whatever the import raises, and AttributeError for a name that is not there.
    """
    module, _, name = path.rpartition(":")
    if module.endswith(".py"):
        spec = importlib.util.spec_from_file_location("__mp_main__", module)
        assert spec is not None
        assert spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        sys.path.insert(0, str(Path(module).parent))
        sys.modules["__mp_main__"] = made
        spec.loader.exec_module(made)
    else:
        import_module(module)
        made = sys.modules[module]
    found: Any = made
    for part in name.split("."):
        found = getattr(found, part)
    return found


def here(home: str) -> Any:
    """Return what a place names in this process; None if it is not there."""
    module, _, name = home.rpartition(":")
    return next(
        (found for one in ((module, *MAIN) if module in MAIN else (module,)) if (found := _found(one, name))), None
    )


def _found(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _defines(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):  # if __name__ == "__main__":
        names = {node.id for node in ast.walk(statement.test) if isinstance(node, ast.Name)}
        return names == {"__name__"}
    if isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return True
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        return not any(isinstance(node, ast.Call | ast.Await) for node in ast.walk(statement))
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
