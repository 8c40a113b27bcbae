"""The small mistakes that people make in a backward, each as what may stand in the place of an expression instead."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeGuard

from gradspec.explain._dimensions import other_dimensions
from gradspec.explain._names import OF_TORCH, context_of, names_in, names_kept, unread_in
from gradspec.explain._within_call import within_call

#: Yields what may stand in the place of a node of a method.
Change = Callable[[ast.AST, ast.FunctionDef], Iterator[ast.expr | ast.stmt]]
_OTHER_SIGN: dict[type[ast.operator], ast.operator] = {ast.Add: ast.Sub(), ast.Sub: ast.Add()}
_OTHER_SIDE: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.Gt(),
    ast.Gt: ast.Lt(),
    ast.LtE: ast.GtE(),
    ast.GtE: ast.LtE(),
}
_OTHER_EDGE: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(),
    ast.Gt: ast.GtE(),
    ast.LtE: ast.Lt(),
    ast.GtE: ast.Gt(),
}
#: Methods that run along a dimension.
_RUNNING = ("cumsum", "cumprod", "logcumsumexp")
#: What reduces all dimensions where none is named.
_OF_ALL = ("sum", "mean", "norm", "amax", "amin", "prod", "std", "var")
_PAIRS = (("sum", "mean"), ("mean", "sum"), ("sin", "cos"), ("cos", "sin"))
_ADDING = (("scatter", "scatter_add"), ("index_copy", "index_add"))
_OTHER_NAME = dict((*_PAIRS, *_ADDING, *((f"{one}_", f"{other}_") for one, other in _ADDING)))
#: What divides by one number less than there are, unless told.
_OF_A_SAMPLE = ("var", "std", "var_mean", "std_mean")
_DIMENSIONS = (0, 1, -1, -2)
#: Methods that take an index.
_INDEXED = (
    "index_add",
    "index_add_",
    "index_select",
    "index_put_",
    "gather",
    "scatter_add",
    "scatter_add_",
    "scatter_",
)
#: Of how many arguments of a call two may have changed places.
_FEW = 4


def _other_order(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.expr]:
    """Two returned gradients, saved tensors, parts of a stack or arguments of a call change places."""
    if isinstance(node, ast.Tuple | ast.List):
        yield from (type(node)(elements, node.ctx) for elements in _exchanged(node.elts))
    if isinstance(node, ast.Call) and len(node.args) <= _FEW:
        yield from (ast.Call(node.func, arguments, node.keywords) for arguments in _exchanged(node.args))


def _exchanged(elements: Sequence[ast.expr]) -> Iterator[list[ast.expr]]:
    for j in range(len(elements)):
        for k in range(j):
            others = list(elements)
            others[j], others[k] = elements[k], elements[j]
            yield others


def _copied(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.expr]:
    """What is written to later is a copy."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield ast.Call(ast.Attribute(node, "clone", ast.Load()), [], [])


def _accumulated(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.stmt]:
    """What is written where an index says is left out, or added there, as often as it says so."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript) and type(node.op) in _OTHER_SIGN:
        value = ast.UnaryOp(ast.USub(), node.value) if isinstance(node.op, ast.Sub) else node.value
        yield _added(node.target, value)
    if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Subscript):
        yield ast.Pass()
        yield _added(target, node.value)


def _added(target: ast.Subscript, value: ast.expr) -> ast.stmt:
    """Return the statement that adds where indices say, as often as they do; of `x[:, i]` in the last dimensions."""
    indices = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    where = target.value
    if isinstance(indices[0], ast.Slice):
        indices = indices[1:]
        where, value = (_called(one, "movedim", [ast.Constant(0), ast.Constant(-1)]) for one in (where, value))
    return _told(where, "index_put_", [ast.Tuple(indices, ast.Load()), value, ast.Constant(value=True)])


def _called(what: ast.expr, method: str, arguments: list[ast.expr]) -> ast.expr:
    what = ast.Name(what.id, ast.Load()) if isinstance(what, ast.Name) else what
    return ast.Call(ast.Attribute(what, method, ast.Load()), arguments, [])


def _next_index(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.expr]:
    """An index is off by one."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and isinstance(node.slice, ast.Name):
        yield from (ast.Subscript(node.value, index, ast.Load()) for index in _beside(node.slice))
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and isinstance(node.slice, ast.Tuple):
        elements = node.slice.elts
        for place, one in enumerate(elements):
            for index in _beside(one) if isinstance(one, ast.Name) else ():
                others = ast.Tuple([*elements[:place], index, *elements[place + 1 :]], ast.Load())
                yield ast.Subscript(node.value, others, ast.Load())
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _INDEXED:
        for place, argument in enumerate(node.args):
            if isinstance(argument, ast.Name):
                for index in _beside(argument):
                    yield ast.Call(node.func, [*node.args[:place], index, *node.args[place + 1 :]], node.keywords)


def _beside(index: ast.expr) -> Iterator[ast.expr]:
    yield from (ast.BinOp(index, operator, ast.Constant(1)) for operator in (ast.Add(), ast.Sub()))


def dimension_throughout(
    node: ast.AST, function: ast.FunctionDef, *, kept: Sequence[str]
) -> Iterator[ast.expr | ast.stmt]:
    """A dimension is another one wherever a statement has it: what forward keeps, or a number.

    Args:
        node: an expression, or an assignment.
        function: the method.
        kept: what forward writes on the context, `dim` of `ctx.dim`.
    """
    if not isinstance(node, ast.Assign | ast.Tuple | ast.BinOp | ast.Call):
        return
    found = Counter(ast.unparse(one) for one in _dimensions_in(node))
    named = names_kept(function, kept)
    for number, times in found.items():
        others = [str(dim) for dim in _DIMENSIONS if str(dim) != number] if times > 1 else []
        for other in (*named, *others):
            changed = copy.deepcopy(node)
            for one in _dimensions_in(changed):
                if ast.unparse(one) == number:
                    _become(changed, one, ast.parse(other, mode="eval").body)
            yield changed


def other_kept(node: ast.AST, function: ast.FunctionDef, *, kept: Sequence[str]) -> Iterator[ast.expr]:
    """What forward keeps stands in the place of a number, or of something else that it keeps.

    Args:
        node: an expression.
        function: the method.
        kept: what forward writes on the context, `scale` of `ctx.scale`.
    """
    named = names_kept(function, kept)
    is_number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    is_named = isinstance(node, ast.Attribute) and ast.unparse(node) in named
    for name in named if is_number or is_named else ():
        if name != ast.unparse(node):
            yield ast.parse(name, mode="eval").body


def number_of_forward(node: ast.AST, function: ast.FunctionDef, *, numbers: Mapping[str, float]) -> Iterator[ast.expr]:
    """A number is another one that forward has.

    Args:
        node: an expression.
        function: the method.
        numbers: those of forward, as it writes them.
    """
    value: Any = node.value if isinstance(node, ast.Constant) else numbers.get(ast.unparse(node))
    if type(value) in (int, float):
        yield from (ast.parse(text, mode="eval").body for text, other in numbers.items() if other != value)


def _dimensions_in(node: ast.AST) -> list[ast.expr]:
    """Return the numbers that the calls in a node are given by position, or as `dim`."""
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)]
    given = [[*one.args, *(k.value for k in one.keywords if k.arg == "dim")] for one in calls]
    return [argument for arguments in given for argument in arguments if _is_whole(argument)]


def _become(tree: ast.AST, old: ast.expr, new: ast.expr) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
            elif isinstance(value, list):
                setattr(parent, name, [new if one is old else one for one in value])


def _written(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.stmt]:
    """A result is written to the memory that its name has stood for."""
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    if isinstance(node, ast.Assign) and isinstance(target, ast.Name) and target.id in names_in(function, node):
        yield _told(target, "copy_", [node.value])


def _told(what: ast.expr, method: str, arguments: list[ast.expr]) -> ast.stmt:
    return ast.Expr(_called(what, method, arguments))


def _other_sign(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and type(node.op) in _OTHER_SIGN:
        yield ast.BinOp(node.left, _OTHER_SIGN[type(node.op)], node.right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node.operand
    if _is_number(node, function):
        yield ast.UnaryOp(ast.USub(), node)


def _is_number(node: ast.AST, function: ast.FunctionDef) -> TypeGuard[ast.expr]:
    """Whether an expression may be a tensor: a name, a call, a sum or product, or what forward keeps on the context."""
    if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return False
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.value.id == context_of(function) and node.attr not in OF_TORCH
    return isinstance(node, ast.Name | ast.Call | ast.BinOp)


def _other_transpose(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.expr]:
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield node.value
    elif _is_number(node, function):
        yield ast.Attribute(node, "mT", ast.Load())
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        yield ast.BinOp(ast.Attribute(node.left, "mT", ast.Load()), node.op, node.right)
        yield ast.BinOp(node.left, node.op, ast.Attribute(node.right, "mT", ast.Load()))
        yield ast.BinOp(node.right, node.op, node.left)


def _other_reduction(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.expr]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    if (name := _OTHER_NAME.get(node.func.attr)) is not None:
        yield ast.Call(ast.Attribute(node.func.value, name, ast.Load()), node.args, node.keywords)
    if node.func.attr in _OF_ALL and not node.args and not node.keywords:
        for dim in (-1, 0):
            of_a_dimension = [ast.keyword("dim", ast.Constant(dim)), ast.keyword("keepdim", ast.Constant(value=True))]
            yield ast.Call(node.func, [], of_a_dimension)
    if node.func.attr in _OF_A_SAMPLE and not any(one.arg in ("correction", "unbiased") for one in node.keywords):
        yield ast.Call(node.func, node.args, [*node.keywords, ast.keyword("correction", ast.Constant(0))])
    if node.func.attr == "squeeze" and not node.args:
        yield from (ast.Call(node.func, [ast.Constant(dim)], []) for dim in (-1, *_DIMENSIONS))
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


def _other_side(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.expr]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OTHER_SIDE:
        yield ast.Compare(node.left, [_OTHER_SIDE[type(node.ops[0])]], node.comparators)


def other_edge(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.expr]:
    """What is equal belongs to the other side; of a range, at both ends."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OTHER_EDGE:
        yield ast.Compare(node.left, [_OTHER_EDGE[type(node.ops[0])]], node.comparators)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
        for left in other_edge(node.left, function):
            yield from (ast.BinOp(left, node.op, right) for right in other_edge(node.right, function))


def _other_number(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.expr]:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        value: Any = node.value
        numbers = [value + 1, value - 1] if isinstance(value, int) else []
        yield from map(ast.Constant, [*numbers, 2 * value, value / 2])


def _other_flag(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.expr]:
    """A flag of a call is the other one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)


def left_out(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.expr]:
    """A factor, a term or a call is one too many."""
    if isinstance(node, ast.Call) and (of := _what_is_called_for(node, function)) is not None:
        yield of
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div | ast.Add | ast.Sub):
        yield node.left
        if isinstance(node.op, ast.Mult | ast.Add):
            yield node.right
        if isinstance(node.op, ast.Sub):
            yield ast.UnaryOp(ast.USub(), node.right)


def _what_is_called_for(node: ast.Call, function: ast.FunctionDef) -> ast.expr | None:
    """Return the tensor of a call: `x` of `x.abs()` and of `torch.abs(x)`; None where there is none."""
    if not isinstance(node.func, ast.Attribute):
        return None
    of, known = node.func.value, names_in(function)
    if not isinstance(of, ast.Name) or of.id in known:
        return of
    first = next(iter(node.args), None)
    is_named = any(isinstance(one, ast.Name) and one.id in known for one in ast.walk(first)) if first else False
    return first if is_named and not isinstance(first, ast.Starred) else None


def _other_way(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.expr]:
    """A loop goes from the end to the beginning."""
    if not any(isinstance(loop, ast.For) and loop.iter is node for loop in ast.walk(function)):
        return
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "reversed":
        yield node.args[0]
    elif isinstance(node, ast.expr):
        whole = ast.Call(ast.Name("list", ast.Load()), [node], [])
        yield ast.Call(ast.Name("reversed", ast.Load()), [whole], [])


def _other_end(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.expr]:
    """What runs along a dimension runs from its other end."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _RUNNING:
        return
    of_torch = isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
    given = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "dim")]
    if len(given) != 1 + of_torch:
        return

    def turned(what: ast.expr) -> ast.expr:
        return ast.Call(ast.Attribute(what, "flip", ast.Load()), [given[-1]], [])

    if of_torch:
        yield turned(ast.Call(node.func, [turned(given[0]), *node.args[1:]], node.keywords))
    else:
        method = ast.Attribute(turned(node.func.value), node.func.attr, ast.Load())
        yield turned(ast.Call(method, node.args, node.keywords))


def _shifted(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.expr]:
    """What a shift brings in from the other end is zero."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "roll":
        return
    of_torch = isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
    given = dict(zip(("shifts", "dims"), node.args[of_torch:], strict=False))
    given |= {one.arg: one.value for one in node.keywords if one.arg}
    shift, dim = given.get("shifts"), given.get("dims")
    if shift is None or dim is None or not _is_whole(shift):
        return
    by = ast.literal_eval(shift)
    come = ast.parse(f"torch.tensor({list(range(by) if by > 0 else range(by, 0))})", mode="eval").body
    yield ast.Call(ast.Attribute(node, "index_fill", ast.Load()), [dim, come, ast.Constant(0)], [])


def _is_whole(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) is int


def _other_name_for_it(node: ast.AST, function: ast.FunctionDef, *, returned: bool) -> Iterator[ast.expr]:
    """Another name stands in what is returned, or elsewhere."""
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load) or node.id not in (n := names_in(function)):
        return
    statements = (one for one in ast.walk(function) if isinstance(one, ast.Return))
    if any(node is one for statement in statements for one in ast.walk(statement)) is returned:
        yield from (ast.Name(name, ast.Load()) for name in n if name != node.id)


def _unread(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.expr]:
    """What a method has and does not read, but for its form as of `x.device`, stands in the place of a call."""
    if isinstance(node, ast.Call):
        yield from (ast.Name(name, ast.Load()) for name in unread_in(function))


#: In this order: what changes least comes first.
CHANGES: tuple[Change, ...] = (
    partial(_other_name_for_it, returned=True),
    _other_order,
    _accumulated,
    _next_index,
    _copied,
    _written,
    _other_sign,
    _other_reduction,
    other_dimensions,
    _other_transpose,
    _other_side,
    within_call,
    _other_way,
    _other_end,
    _shifted,
    _unread,
    left_out,
    _other_flag,
    _other_number,
    partial(_other_name_for_it, returned=False),
)
