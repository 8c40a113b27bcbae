"""Our laws and specs as their files declare them: what lists and explains them need not import torch, for seconds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from gradspec.law import ALL_KINDS, Law, Scope
from gradspec.spec._base import first_words
from gradspec.spec._kind import Kind

#: The packages whose imports are the laws, in the order in which these run.
_LAWS = ("gradspec.laws.tensor", "gradspec.laws.operator", "gradspec.laws.module", "gradspec.laws.text")
_PACKAGE = Path(__file__).parents[1]
_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, kw_only=True)
class Declared:
    """The listing of a spec."""

    name: str
    kind: str
    headline: str


def declared_laws() -> tuple[Law, ...]:
    """Return our laws, which say what they are, and cannot be checked."""
    return tuple(
        Law(check=_refuse, **_told(str(node.module), alias.name))
        for package in _LAWS
        for node in _tree(package).body
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(f"{package}.")
        for alias in node.names
    )


def declared_specs(kind: Kind) -> Iterator[tuple[str, Declared]]:
    """Yield the specs of a kind that its home lists, each with the path that names only it."""
    module, listed = _bound(kind.home, kind.listed)
    assert isinstance(listed, ast.Tuple)
    for item in listed.elts:
        assert isinstance(item, ast.Name)
        told = _told(module, item.id, "name", "summary")
        own = item.id if item.id in _names(kind.home) else told["name"]
        yield (
            f"{kind.home}:{own}",
            Declared(name=told["name"], kind=kind.name, headline=told.get("summary") or _documented(module, item.id)),
        )


def _told(module: str, name: str, *wanted: str) -> dict[str, Any]:
    """Return the keyword arguments of the call that makes what a name is bound to; all but functions unless told."""
    home, call = _bound(module, name)
    assert isinstance(call, ast.Call)
    given = {"__doc__": ast.get_docstring(_tree(home), clean=False), "ALL_KINDS": ALL_KINDS, "Scope": Scope}
    return {
        keyword.arg: eval(compile(ast.Expression(keyword.value), home, "eval"), {"__builtins__": {}}, given)
        for keyword in call.keywords
        if keyword.arg and (keyword.arg in wanted if wanted else keyword.arg != "check")
    }


def _documented(module: str, name: str) -> str:
    """Return the first words of the docstring of the first object that a spec documents."""
    home, call = _bound(module, name)
    assert isinstance(call, ast.Call)
    (listed,) = (keyword.value for keyword in call.keywords if keyword.arg == "documented")
    assert isinstance(listed, ast.Tuple)
    assert isinstance(listed.elts[0], ast.Name)
    _, node = _bound(home, listed.elts[0].id)
    assert isinstance(node, _DEFINED)
    return first_words(ast.get_docstring(node) or "")


def _bound(module: str, name: str) -> tuple[str, ast.AST]:
    """Return the expression or definition that a name is bound to, and its module; imports are followed."""
    for node in _tree(module).body:
        if isinstance(node, _DEFINED) and node.name == name:
            return module, node
        if isinstance(node, ast.Assign) and [name] == [getattr(target, "id", "") for target in node.targets]:
            return module, node.value
        if isinstance(node, ast.ImportFrom) and name in (alias.asname or alias.name for alias in node.names):
            (original,) = (alias.name for alias in node.names if name == (alias.asname or alias.name))
            return _bound(str(node.module), original)
    raise LookupError(f"{module} binds no {name}")


def _names(module: str) -> set[str]:
    """Return the names that a module imports or assigns."""
    imports = [node for node in _tree(module).body if isinstance(node, ast.ImportFrom)]
    assigned = [node for node in _tree(module).body if isinstance(node, ast.Assign)]
    return {alias.asname or alias.name for node in imports for alias in node.names} | {
        getattr(target, "id", "") for node in assigned for target in node.targets
    }


@cache
def _tree(module: str) -> ast.Module:
    place = _PACKAGE.joinpath(*module.split(".")[1:])
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def _refuse(_: Any) -> NoReturn:
    raise NotImplementedError("this law was read off its file to be shown, not to be checked")
