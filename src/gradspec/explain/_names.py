"""The names that a method of a Function has, and what it keeps on its context."""

from __future__ import annotations

import ast
from collections.abc import Sequence

#: The attributes of ctx that are not tensors of the formula.
OF_TORCH = ("saved_tensors", "saved_variables", "needs_input_grad")
#: What a tensor is asked for that is not its numbers.
_FORM = ("device", "dtype", "layout", "ndim", "shape")


def names_in(function: ast.FunctionDef, before: ast.stmt | None = None) -> list[str]:
    """Return the names that a method gives, but for its context; those that it has before a statement."""
    given = function.args
    arguments = [one.arg for one in (*given.args, given.vararg) if one is not None]
    stored = [
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Store)
        and (before is None or node.lineno < before.lineno)
    ]
    return [name for name in dict.fromkeys([*arguments, *stored]) if name not in ("cls", context_of(function))]


def unread_in(function: ast.FunctionDef) -> list[str]:
    """Return the names of a method that it does not read, but for the form of a tensor, as in `x.device`."""
    looked_at = [one.value for one in ast.walk(function) if isinstance(one, ast.Attribute) and one.attr in _FORM]
    names = (one for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load))
    read = {one.id for one in names if not any(one is value for value in looked_at)}
    return [name for name in names_in(function) if name not in read]


def context_of(function: ast.FunctionDef) -> str:
    """Return what a method of a Function calls its context; nothing for a function that backward calls."""
    if function.name not in ("forward", "backward", "setup_context"):
        return ""
    first, *rest = function.args.args
    return rest[0].arg if first.arg == "cls" else first.arg


def kept_by(function: ast.FunctionDef) -> list[str]:
    """Return what a method writes on its context: `scale` of `ctx.scale = 2`."""
    context = context_of(function)
    found = (
        node.attr
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == context
    )
    return list(dict.fromkeys(found))


def read_of_the_context(function: ast.FunctionDef) -> list[str]:
    """Return what a method reads of its context, but for the tensors that it unpacks."""
    context = context_of(function)
    found = (
        ast.unparse(node)
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Load)
        and isinstance(node.value, ast.Name)
        and node.value.id == context
        and node.attr not in OF_TORCH
    )
    return list(dict.fromkeys(found))


def names_kept(function: ast.FunctionDef, kept: Sequence[str]) -> list[str]:
    """Return what forward keeps as a method names it, `ctx.scale`; nothing in one that has no context."""
    context = context_of(function)
    return [f"{context}.{name}" for name in kept if context]
