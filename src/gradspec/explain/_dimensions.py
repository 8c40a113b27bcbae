"""Dimensions that a reduction has too few or too many of: `(0, 2)` in place of `(0,)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

#: Up to which dimension one is added.
_MOST = 4


def other_dimensions(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.expr]:
    """Yield some dimensions with one more of them, and with one less."""
    if not isinstance(node, ast.Tuple) or not isinstance(node.ctx, ast.Load):
        return
    try:
        dims = ast.literal_eval(node)
    except ValueError:
        return
    if not dims or not all(type(dim) is int for dim in dims):
        return
    every = range(_MOST) if min(dims) >= 0 else range(-_MOST, 0)
    more = [tuple(sorted((*dims, dim))) for dim in every if dim not in dims]
    less = [tuple(other for other in dims if other != dim) for dim in dims] if len(dims) > 1 else []
    yield from (ast.Tuple(list(map(ast.Constant, one)), ast.Load()) for one in (*more, *less))
