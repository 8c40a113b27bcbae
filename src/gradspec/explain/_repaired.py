"""Whether a gradient is right once one expression of backward reads otherwise: which line, and what it should say.

Each of the small mistakes that people make has an opposite: a sign is turned, two results change places, a sum becomes
a mean. Each is tried in turn, and one is said only if all gradients are right with it, on numbers drawn anew too.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from gradspec.explain._bounded import Bounded
from gradspec.explain._wrong import Wrong
from gradspec.law import Reason
from gradspec.laws.tensor.support._call import vjp
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._graph import classes_behind, is_of_operator

#: How many other readings of a backward are tried, and up to how many elements of the arguments.
_MOST, _ELEMENTS = 600, 4096
_OTHER_SIGN: dict[type[ast.operator], ast.operator] = {ast.Add: ast.Sub(), ast.Sub: ast.Add()}
_OTHER_SIDE: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.Gt(),
    ast.Gt: ast.Lt(),
    ast.LtE: ast.GtE(),
    ast.GtE: ast.LtE(),
}
_OTHER_NAME = {"sum": "mean", "mean": "sum", "sin": "cos", "cos": "sin"}
_DIMENSIONS = (0, 1, -1, -2)


@dataclass(frozen=True)
class _Reading:
    """A backward that reads otherwise in one place."""

    backward: Any
    where: str
    #: The expression, and what stands in its place.
    old: str
    new: str
    #: The whole statement then.
    statement: str


def repaired(wrong: Wrong) -> Reason | None:
    """Whether all gradients are right once one expression of backward is another one."""
    if sum(t.numel() for t in wrong.inputs.tensors()) > _ELEMENTS:
        return None
    y = wrong.trial.spec.function(*wrong.inputs.args(wrong.inputs.leaves()))
    for cls in classes_behind(y):
        if is_of_operator(cls):
            continue
        for reading in islice(_readings(cls), _MOST):
            if quietly(lambda cls=cls, reading=reading: _is_right(wrong, cls, reading)):  # type: ignore[misc]
                said = f"right with `{reading.new}` in place of `{reading.old}` ({reading.where})"
                return Reason(kind="repair", words=said, evidence={"statement": reading.statement})
    return None


def _is_right(wrong: Wrong, cls: Any, reading: _Reading) -> bool:
    with _in_its_place(cls, reading.backward), Bounded(wrong.most_operations):
        got = vjp(wrong.trial.spec.function, wrong.inputs, tuple(t.clone() for t in wrong.v))
    return all(
        (right is None or not bool(right.any()))
        if (mine := got[name]) is None
        else right is not None and wrong.same(mine, right)
        for name, right in wrong.right.items()
    )


@contextmanager
def _in_its_place(cls: Any, backward: Any) -> Iterator[None]:
    """Give a Function another backward for a while."""
    own = vars(cls).get("backward")
    cls.backward = backward
    try:
        yield
    finally:
        if own is None:
            del cls.backward
        else:
            cls.backward = own


def _readings(cls: type) -> Iterator[_Reading]:
    """Yield the backward of a Function with one expression changed, the likeliest mistakes first."""
    backward: Any = inspect.unwrap(getattr(cls, "backward"))  # noqa: B009 - of any class
    backward = getattr(backward, "__func__", backward)
    if backward.__code__.co_freevars:
        return
    lines, first = inspect.getsourcelines(backward)
    source = textwrap.dedent("".join(lines))
    tree = ast.parse(source)
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
    inside = {id(node) for statement in function.body for node in ast.walk(statement)}
    tried = {ast.unparse(tree)}
    for change in _CHANGES:
        for number, node in enumerate(ast.walk(tree)):
            for other in change(node, tree) if id(node) in inside else ():
                copy = deepcopy(tree)
                target = next(islice(ast.walk(copy), number, None))
                _replace(copy, target, deepcopy(other))
                text = ast.unparse(ast.fix_missing_locations(copy))
                if text in tried or (made := _compiled(text, backward)) is None:
                    continue
                tried.add(text)
                before, statement, line = _statement(tree, copy)
                file = Path(backward.__code__.co_filename).name
                where = f"{file}:{first + line - 1}, in backward"
                said = ast.unparse(node), ast.unparse(ast.fix_missing_locations(other))
                # A name or a number may stand in a line more than once.
                said = (before, statement) if isinstance(node, ast.Name | ast.Constant) else said
                yield _Reading(made, where, *said, statement)


def _compiled(text: str, backward: Any) -> Any:
    scope = dict(backward.__globals__)
    try:
        exec(compile(text, "<a reading of backward>", "exec"), scope)
    except SyntaxError:
        return None
    return scope.get(backward.__name__)


def _replace(tree: ast.AST, target: ast.AST, other: ast.AST) -> None:
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if value is target:
                setattr(parent, field, other)
            elif isinstance(value, list) and any(one is target for one in value):
                setattr(parent, field, [other if one is target else one for one in value])


def _statement(tree: ast.AST, copy: ast.AST) -> tuple[str, str, int]:
    """Return the innermost statement that differs, before and then, and its line."""
    pairs = zip(_statements(tree), _statements(copy), strict=True)
    differing = [(ast.unparse(a), ast.unparse(b), a.lineno) for a, b in pairs if ast.unparse(a) != ast.unparse(b)]
    return min(differing, key=lambda one: len(one[0]))


def _statements(tree: ast.AST) -> list[ast.stmt]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]


# Each yields what may stand in the place of a node.


def _other_order(node: ast.AST, tree: ast.AST) -> Iterator[ast.AST]:
    """Two returned gradients, or two saved tensors, change places."""
    if not isinstance(node, ast.Tuple):
        return
    for j in range(len(node.elts)):
        for k in range(j):
            elements = list(node.elts)
            elements[j], elements[k] = elements[k], elements[j]
            yield ast.Tuple(elements, node.ctx)


def _other_sign(node: ast.AST, tree: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BinOp) and type(node.op) in _OTHER_SIGN:
        yield ast.BinOp(node.left, _OTHER_SIGN[type(node.op)], node.right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node.operand
    if isinstance(node, ast.Name | ast.Call | ast.BinOp) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        yield ast.UnaryOp(ast.USub(), node)


def _other_transpose(node: ast.AST, tree: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        yield ast.BinOp(ast.Attribute(node.left, "mT", ast.Load()), node.op, node.right)
        yield ast.BinOp(node.left, node.op, ast.Attribute(node.right, "mT", ast.Load()))
        yield ast.BinOp(node.right, node.op, node.left)


def _other_reduction(node: ast.AST, tree: ast.AST) -> Iterator[ast.AST]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    if (name := _OTHER_NAME.get(node.func.attr)) is not None:
        yield ast.Call(ast.Attribute(node.func.value, name, ast.Load()), node.args, node.keywords)
    for place, argument in enumerate(node.args):
        if _is_whole(argument):
            for dim in _DIMENSIONS:
                yield ast.Call(
                    node.func, [*node.args[:place], ast.Constant(dim), *node.args[place + 1 :]], node.keywords
                )
    for place, keyword in enumerate(node.keywords):
        if keyword.arg == "dim" and _is_whole(keyword.value):
            for dim in _DIMENSIONS:
                changed = [*node.keywords[:place], ast.keyword("dim", ast.Constant(dim)), *node.keywords[place + 1 :]]
                yield ast.Call(node.func, node.args, changed)


def _other_side(node: ast.AST, tree: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OTHER_SIDE:
        yield ast.Compare(node.left, [_OTHER_SIDE[type(node.ops[0])]], node.comparators)


def _other_number(node: ast.AST, tree: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        value: Any = node.value
        numbers = [value + 1, value - 1] if isinstance(value, int) else []
        yield from map(ast.Constant, [*numbers, 2 * value, value / 2])


def _less(node: ast.AST, tree: ast.AST) -> Iterator[ast.AST]:
    """A factor or a term is one too many."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div | ast.Add | ast.Sub):
        yield node.left
        if isinstance(node.op, ast.Mult | ast.Add):
            yield node.right


def _more(node: ast.AST, tree: ast.AST) -> Iterator[ast.AST]:
    """A factor is missing: something else that backward has a name for."""
    if not isinstance(node, ast.BinOp | ast.Call | ast.Name) or (
        isinstance(node, ast.Name) and not _is_summed(node, tree)
    ):
        return
    for name in _names(tree):
        yield ast.BinOp(node, ast.Mult(), ast.Name(name, ast.Load()))
        yield ast.BinOp(node, ast.Mult(), ast.BinOp(ast.Constant(1), ast.Sub(), ast.Name(name, ast.Load())))
        yield ast.BinOp(node, ast.Div(), ast.Name(name, ast.Load()))


def _is_summed(node: ast.AST, tree: ast.AST) -> bool:
    """Whether a name is a term of a sum, or what is returned."""
    return any(
        node in (parent.left, parent.right) if isinstance(parent, ast.BinOp) else node in ast.walk(parent)
        for parent in ast.walk(tree)
        if isinstance(parent, ast.Return)
        or (isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add | ast.Sub))
    )


def _names(tree: ast.AST) -> list[str]:
    """Return the names that backward gives, but for its context."""
    function = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    given = [one.arg for one in function.args.args[1:]]
    stored = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return list(dict.fromkeys([*given, *stored]))


def _is_whole(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) is int


#: In this order: what changes least comes first.
_CHANGES: tuple[Callable[[ast.AST, ast.AST], Iterator[ast.AST]], ...] = (
    _other_order,
    _other_sign,
    _other_reduction,
    _other_transpose,
    _other_side,
    _other_number,
    _less,
    _more,
)
