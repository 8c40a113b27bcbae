"""Calls that reveal: a call of an audit with other sizes, values and options, one thing changed at a time.

Most wrong kernels are right on a friendly shape (Liger, flash-attention and others report: a tail beyond the last tile,
a chunk that is shorter than a window, logits that saturate). A call that is written as text can be written again with
another number, and what is found is a call to paste.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import chain
from types import CodeType
from typing import Any, TypeGuard

from gradspec._audit._case_syntax import call_of, text_of

#: Where a function names no size of a tile, those around this one are tried.
TILE = 16
#: The sizes of tiles that a function may name.
_TILES = (8, 16, 32, 64, 128)
_SHAPED = ("randn", "rand", "zeros", "ones")
#: What is done with normal numbers: all negative, a common offset, saturated, hardly different from zero, zero.
_VALUES = ("{0} * 0.1 - 5", "{0} + 1000", "{0} * 30", "{0} * 200", "{0} * 0.001", "{0} * 0")


def variants(text: str, function: Callable[..., Any], signature: inspect.Signature) -> Iterator[str]:
    """Yield a call with other sizes, values and options, each once.

    Args:
        text: a call that `read_case` reads.
        function: what is called; its constants say how large its tiles are.
        signature: of the call; its defaults say which options there are.
    """
    seen = {text_of(call_of(text))}
    ways = (_forms(text), _indices(text, signature), sizes(text, function), _values(text), _options(text, signature))
    for variant in chain.from_iterable(ways):
        if variant not in seen:
            seen.add(variant)
            yield variant


def smaller(text: str) -> Iterator[str]:
    """Yield a call with one of its sizes smaller, the smallest first."""
    for size in _sizes_in(call_of(text)):
        yield from (_resized(text, size, other) for other in range(1, min(size, 5)))


def resized(text: str, most: int) -> Iterator[str]:
    """Yield a call with one of its sizes smaller, the largest size first, so that it has another size than the rest."""
    found = _sizes_in(call_of(text))
    for size in sorted(found, reverse=True):
        yield from (_resized(text, size, other) for other in range(min(most, size - 1), 1, -1) if other not in found)


def _forms(text: str) -> Iterator[str]:
    """Yield a call in which sizes that were equal are so no more, and one with a dimension more."""
    places = list(_shapes(call_of(text)))
    for number, place in enumerate(places):
        equal = [k for k, other in enumerate(places) if other.value == place.value]
        for changed in ([number], [k for k in equal if k != number]):
            if 0 < len(changed) < len(equal):
                tree = call_of(text)
                for k, size in enumerate(_shapes(tree)):
                    if k in changed:
                        size.value = int(size.value) + 1  # type: ignore[arg-type]  # a whole number
                yield text_of(tree)
    shaped = [node for node in ast.walk(call_of(text)) if _is_shaped(node)]
    most = max((len(node.args) for node in shaped), default=0)
    for number, node in enumerate(shaped):
        if len(node.args) == most and all(isinstance(one, ast.Constant) for one in node.args):
            tree = call_of(text)
            mine = [one for one in ast.walk(tree) if _is_shaped(one)][number]
            mine.args = [ast.Constant(2), *mine.args]
            yield text_of(tree)


def _indices(text: str, signature: inspect.Signature) -> Iterator[str]:
    """Yield a call in which an index is repeated, one number only, in another order or moved; a mask is all of one.

    A negative default, such as that of `ignore_index`, is what an index may be beside those that count.
    """
    defaults = [parameter.default for parameter in signature.parameters.values()]
    left_out = dict.fromkeys(one for one in defaults if type(one) is int and one < 0)
    counted = [node for node in ast.walk(call_of(text)) if _is_counted(node)]
    for place in range(len(counted)):
        tree = call_of(text)
        mine = [one for one in ast.walk(tree) if _is_counted(one)][place]
        yield text_of(_replaced(tree, mine, ast.BinOp(mine, ast.Add(), ast.Constant(1))))
    for place, given in enumerate(_listed(call_of(text))):
        others = [[*given[:-1], given[0]], [given[0]] * len(given), [given[-1]] * len(given), given[::-1]]
        others += [[one + 1 for one in given]] if all(type(one) is int for one in given) else []
        others += [[*given[:-1], number] for number in left_out]
        for other in others:
            tree = call_of(text)
            node = list(_lists(tree))[place]
            node.elts = [ast.Constant(value) for value in other]
            yield text_of(tree)


def _is_counted(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "arange"


def _listed(tree: ast.AST) -> list[list[Any]]:
    return [[ast.literal_eval(one) for one in node.elts] for node in _lists(tree)]


def _lists(tree: ast.AST) -> Iterator[ast.List]:
    """Yield the lists of whole numbers or of True and False in a tensor that is written out, or its rows."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="tensor"), args=[ast.List() as found]):
                rows = (one for one in ast.walk(found) if isinstance(one, ast.List))
                yield from (one for one in rows if len(one.elts) > 1 and all(map(_is_whole, one.elts)))


def _is_whole(node: ast.expr) -> bool:
    """Whether a node is a whole number, True or False; -100 is a sign before one."""
    node = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _is_shaped(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _SHAPED


def sizes(text: str, function: Callable[..., Any]) -> Iterator[str]:
    """Yield a call with one of its sizes changed: one less, one more, around a tile of the function."""
    found = _sizes_in(call_of(text))
    tiles = sorted(set(_TILES) & _constants(function)) or [TILE]
    for size in found:
        beside = (1, size - 1, size + 1, *(n for t in tiles for n in (t - 1, t, t + 1, 2 * t - 1)))
        for other in dict.fromkeys(beside):
            if other >= 1 and other != size:
                yield _resized(text, size, other)


def _values(text: str) -> Iterator[str]:
    for place in range(len(_drawn(call_of(text)))):
        for form in _VALUES:
            tree = call_of(text)
            node = _drawn(tree)[place]
            other = ast.parse(form.format(ast.unparse(node)), mode="eval").body
            yield text_of(_replaced(tree, node, other))


def _options(text: str, signature: inspect.Signature) -> Iterator[str]:
    call = call_of(text)
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    for place, node in enumerate(given):
        for other in _others(node):
            tree = call_of(text)
            mine = [*tree.args, *(keyword.value for keyword in tree.keywords)][place]
            yield text_of(_replaced(tree, mine, other))
    left = _left(call, signature)
    for place, default in enumerate(left):
        for other in _others(ast.Constant(default)):
            tree = call_of(text)
            tree.args = [*tree.args, *map(ast.Constant, left[:place]), other]
            yield text_of(tree)


def _others(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.Constant(value=bool() as value):
            return [ast.Constant(not value)]
        case ast.Constant(value=0.0):
            return [ast.Constant(0.1), ast.Constant(1.0)]
        case ast.Constant(value=float() as value):
            return [ast.Constant(value * 2), ast.Constant(value / 2), ast.Constant(-value)]
        case ast.Constant(value=int() as value):
            return [ast.Constant(value + 1)]
    return []


def _left(call: ast.Call, signature: inspect.Signature) -> list[Any]:
    """Return the defaults that a call leaves as they are, in order, as far as they are given by position."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = [parameter for parameter in signature.parameters.values() if parameter.kind in kinds]
    left = [] if call.keywords else named[len(call.args) :]
    return [one.default for one in left if one.default is not one.empty]


def _constants(function: Callable[..., Any]) -> set[int]:
    """Return the whole numbers that the code of a function names."""
    parts = [getattr(function, name, None) for name in ("forward", "backward")] if isinstance(function, type) else []
    found: set[int] = set()
    codes = [code for part in (*parts, function) if isinstance(code := getattr(part, "__code__", None), CodeType)]
    while codes:
        for constant in codes.pop().co_consts:
            if isinstance(constant, CodeType):
                codes.append(constant)
            elif isinstance(constant, int):
                found.add(int(constant))
    scope: dict[str, Any] = {}
    for part in (*parts, function):
        scope |= {k: v for k, v in getattr(part, "__globals__", {}).items() if k.isupper() and isinstance(v, int)}
    return found | set(scope.values())


def _drawn(tree: ast.AST) -> list[ast.Call]:
    """Return the normal numbers of a call: of others nobody knows in which range they make sense."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "randn"]


def _shapes(tree: ast.AST) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name), args=args) if name in _SHAPED:
                given = args[0].elts if len(args) == 1 and isinstance(args[0], ast.Tuple | ast.List) else args
                yield from (n for n in given if isinstance(n, ast.Constant) and type(n.value) is int)


def _sizes_in(tree: ast.AST) -> list[int]:
    return list(dict.fromkeys(int(node.value) for node in _shapes(tree) if int(node.value) > 0))  # type: ignore[arg-type]


def _resized(text: str, size: int, other: int) -> str:
    """Return a call in which a size is another one, wherever it stands: what was of one size still is."""
    tree = call_of(text)
    for node in (*_shapes(tree), *_shapes_of_indices(tree)):
        if node.value == size:
            node.value = other
    for found in _lists(tree):
        if len(found.elts) == size:
            found.elts = [found.elts[place % size] for place in range(other)]
    return text_of(tree)


def _shapes_of_indices(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the bounds and the sizes of whole numbers: as many as there are rows, or rows to choose from."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="randint" | "arange"), args=args):
                yield from (n for one in args for n in ast.walk(one) if isinstance(n, ast.Constant) and n.value)


def _replaced(tree: ast.Call, node: ast.expr, other: ast.expr) -> ast.Call:
    class Replace(ast.NodeTransformer):
        def visit(self, at: ast.AST) -> Any:
            return deepcopy(other) if at is node else self.generic_visit(at)

    changed: ast.Call = Replace().visit(tree)
    return changed
