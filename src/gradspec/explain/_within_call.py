"""A factor that belongs inside of a call, as in `rotate(g * sin)`, or outside of one, as in `g.sum(0) * y`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from copy import deepcopy
from typing import TypeGuard


def within_call(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.expr]:
    """Yield a product with its factor moved into the call beside it, or out of the call."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        sides = [(node.left, node.right), (node.right, node.left)]
        for call, factor in sides if isinstance(node.op, ast.Mult) else sides[:1]:
            if isinstance(call, ast.Call) and (given := _given(call)) is not None:
                yield _with(call, ast.BinOp(deepcopy(given), node.op, deepcopy(factor)))
    elif isinstance(node, ast.Call) and isinstance(given := _given(node), ast.BinOp):
        if isinstance(given.op, ast.Mult | ast.Div):
            yield ast.BinOp(_with(node, deepcopy(given.left)), given.op, deepcopy(given.right))
        if isinstance(given.op, ast.Mult):
            yield ast.BinOp(_with(node, deepcopy(given.right)), given.op, deepcopy(given.left))


def _given(call: ast.Call) -> ast.expr | None:
    """Return what a call is of: what its method is called on, or its first argument."""
    if _is_method(call.func):
        return call.func.value
    return call.args[0] if call.args and not isinstance(call.args[0], ast.Starred) else None


def _is_method(called: ast.expr) -> TypeGuard[ast.Attribute]:
    """Whether what is called is a method of a value, and no function of a module, as far as its name shows."""
    owner = called
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    is_of_module = isinstance(owner, ast.Name) and owner.id in ("torch", "F", "functional", "math", "nn")
    return isinstance(called, ast.Attribute) and not is_of_module


def _with(call: ast.Call, given: ast.expr) -> ast.Call:
    made = deepcopy(call)
    if _is_method(made.func):
        made.func.value = given
    else:
        made.args[0] = given
    return made
