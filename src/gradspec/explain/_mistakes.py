"""The small mistakes that people make in a backward, each as what may stand in the place of an expression instead."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import combinations, permutations
from typing import Any

import torch
from torch import Tensor

from gradspec.laws.tensor.support._diagnosis import quietly

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
#: Methods of one tensor that somebody may have called once too often.
_ONCE_TOO_OFTEN = ("t", "transpose", "conj", "flip", "neg", "abs", "sqrt", "exp", "sigmoid", "tanh", "square")
#: Methods that run along a dimension.
_RUNNING = ("cumsum", "cumprod", "logcumsumexp")
_OTHER_NAME = {"sum": "mean", "mean": "sum", "sin": "cos", "cos": "sin"}
_DIMENSIONS = (0, 1, -1, -2)
#: Of how many arguments of a call two may have changed places.
_FEW = 4
#: What a factor or a term that is missing is made of: of nothing else, of a name, of two, of three. In this order.
_OF_NONE = (
    *("{e}.conj()", "1 - {e}", "1 + {e}", "{e} - 1", "2 * {e}", "{e} / 2", "1 / {e}", "{e} * {e}", "{e}.sqrt()"),
    *("{e}.exp()", "{e}.abs()", "{e}.sign()", "{e}.sum(0)", "{e}.sum(-1, keepdim=True)", "{e}.flip(-1)"),
    *("{e} - {e}.mean(-1, keepdim=True)", "{e} - {e}.mean(0)", "{e} - {e}.mean()", "{e} - {e}.sum(-1, keepdim=True)"),
    *("torch.eye({e}.shape[-1]).to({e}) - {e}", "{e} - torch.eye({e}.shape[-1]).to({e})"),
)
_OF_ONE = (
    *("{e} * {a}", "{e} * (1 - {a})", "{e} / {a}", "{e} + {a}", "{e} - {a}", "{a} - {e}"),
    *("{e} * (1 - {a} * {a})", "{e} * ({a} > 0)", "{e} + {a} * {a}", "{e} - {a} * {a}", "{e} * {a}.conj()"),
    *("{e} @ {a}", "{a} @ {e}", "{e} @ {a}.mT", "{a}.mT @ {e}", "{e} * {a} * {a}", "{e} / {a} / {a}"),
    *("{e} * {a}.exp()", "{e} * {a}.sigmoid()", "{e} * {a}.sign()", "{e} * {a}.cos()", "{e} * {a}.sin()"),
    *("{e} * ({a} < 0)", "{e} * ({a}.abs() <= 1)"),
    *("{e} * {a}.sum(-1, keepdim=True)", "{e} / {a}.sum(-1, keepdim=True)"),
    *("{e} / {a}.shape[0]", "{e} / {a}.shape[-1]", "{e} / {a}.numel()", "{e} * {a}.shape[0]", "{e} * {a}.shape[-1]"),
    *("{e} - {a} * ({e} * {a}).sum(-1, keepdim=True)", "{e} - {a} * ({e} * {a}).mean(-1, keepdim=True)"),
    *("{e} - {a} * {e}.sum(-1, keepdim=True)", "{e} - {a}.exp() * {e}.sum(-1, keepdim=True)"),
)
_OF_TWO = ("{e} * {a} * {b}", "{e} + {a} * {b}", "{e} - {a} * {b}", "{e} / {a} / {b}")
_OF_TWO_IN_ORDER = (
    *("{e} + {a} * (1 - {b})", "{e} - {a} * (1 - {b})", "{e} * {a} / {b}", "{e} + {a} / {b}", "{e} - {a} / {b}"),
    *("{e} + {a} @ {b}", "{e} - {a} @ {b}", "{e} + {a}.mT @ {b}", "{e} + {a} @ {b}.mT"),
    *("{e} * {a} / (1 - {b})", "{e} + torch.linalg.cross({a}, {b})"),
    *("{e} * ({a} > {b})", "{e} * ({a} >= {b})", "{e} * ({a} != {b})", "{e} * ({a} != {b})[..., None]"),
)
_OF_THREE = ("{e} + {a} * {b} * {c}", "{e} - {a} * {b} * {c}")
#: The attributes of ctx that are not tensors of the formula.
_OF_TORCH = ("saved_tensors", "saved_variables", "needs_input_grad")


def _other_order(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.expr]:
    """Two returned gradients, two saved tensors, or two arguments of a call change places."""
    if isinstance(node, ast.Tuple):
        yield from (ast.Tuple(elements, node.ctx) for elements in _exchanged(node.elts))
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
    if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Subscript):
        yield ast.Pass()
        index = target.slice if isinstance(target.slice, ast.Tuple) else ast.Tuple([target.slice], ast.Load())
        yield _told(target.value, "index_put_", [index, node.value, ast.Constant(value=True)])


def _written(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.stmt]:
    """A result is written to the memory that its name has stood for."""
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    if isinstance(node, ast.Assign) and isinstance(target, ast.Name) and target.id in _names(function, node):
        yield _told(target, "copy_", [node.value])


def _told(what: ast.expr, method: str, arguments: list[ast.expr]) -> ast.stmt:
    what = ast.Name(what.id, ast.Load()) if isinstance(what, ast.Name) else what
    return ast.Expr(ast.Call(ast.Attribute(what, method, ast.Load()), arguments, []))


def _other_sign(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and type(node.op) in _OTHER_SIGN:
        yield ast.BinOp(node.left, _OTHER_SIGN[type(node.op)], node.right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node.operand
    if isinstance(node, ast.Name | ast.Call | ast.BinOp) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        yield ast.UnaryOp(ast.USub(), node)


def _other_transpose(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.expr]:
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield node.value
    elif isinstance(node, ast.Name | ast.BinOp | ast.Call) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
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
    """What is equal belongs to the other side."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OTHER_EDGE:
        yield ast.Compare(node.left, [_OTHER_EDGE[type(node.ops[0])]], node.comparators)


def _other_number(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.expr]:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        value: Any = node.value
        numbers = [value + 1, value - 1] if isinstance(value, int) else []
        yield from map(ast.Constant, [*numbers, 2 * value, value / 2])


def _less(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.expr]:
    """A factor, a term or a call is one too many."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ONCE_TOO_OFTEN:
        yield node.func.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div | ast.Add | ast.Sub):
        yield node.left
        if isinstance(node.op, ast.Mult | ast.Add):
            yield node.right
        if isinstance(node.op, ast.Sub):
            yield ast.UnaryOp(ast.USub(), node.right)


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


def _is_whole(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) is int


def _other_name_for_it(node: ast.AST, function: ast.FunctionDef, *, returned: bool) -> Iterator[ast.expr]:
    """Another name stands in what is returned, or elsewhere."""
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load) or node.id not in (n := _names(function)):
        return
    statements = (one for one in ast.walk(function) if isinstance(one, ast.Return))
    if any(node is one for statement in statements for one in ast.walk(statement)) is returned:
        yield from (ast.Name(name, ast.Load()) for name in n if name != node.id)


def _names(function: ast.FunctionDef, before: ast.stmt | None = None) -> list[str]:
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


def context_of(function: ast.FunctionDef) -> str:
    """Return what a method of a Function calls its context; nothing for a function that backward calls."""
    if not function.decorator_list and function.name not in ("forward", "backward", "setup_context"):
        return ""
    first, *rest = function.args.args
    return rest[0].arg if first.arg == "cls" else first.arg


def may_lack(node: ast.AST, parent: ast.AST) -> bool:
    """Whether a factor or a term may be missing at a node: a value, and no name of a method or a dimension."""
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float) and isinstance(parent, ast.BinOp)
    if not isinstance(node, ast.Name | ast.BinOp | ast.UnaryOp | ast.Call | ast.Attribute):
        return False
    if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return False
    return not (isinstance(parent, ast.Call) and parent.func is node) and not (
        isinstance(node, ast.Attribute) and node.attr in _OF_TORCH
    )


def is_constant(node: ast.AST) -> bool:
    """Whether an expression makes zeros or ones, where a term may have been left out."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in ("zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones")


@dataclass
class Terms:
    """Stands in a method in the place of an expression, with one more factor or term: the chosen one."""

    names: list[ast.expr]
    #: Of how many of them each is made at most.
    count: int
    #: What it is then; `{e}` is the expression.
    texts: list[str]
    made: list[Callable[[Any, Sequence[Any]], Any]]
    #: None while it is only noted what each of them gives.
    chosen: int | None = None
    #: What each gives in the first call, None where that raises; and how many calls there were.
    given: list[Any] = field(default_factory=list)
    unchanged: Any = None
    calls: int = 0

    def __call__(self, value: Any, named: Sequence[Any]) -> Any:
        """Return a value with the chosen factor or term."""
        if self.chosen is not None:
            return self.made[self.chosen](value, named)
        self.calls += 1
        if self.calls == 1:
            unchanged = _known_by(value)
            found = [quietly(lambda one=one: _known_by(one(value, named))) for one in self.made]  # type: ignore[misc]
            # Another shape is meant by a single name, by what multiplies matrices, or where one number meets a tensor.
            shapes = self.count == 1 or not isinstance(value, Tensor) or value.ndim == 0
            self.given = [
                one if one is not None and (shapes or one[0] == unchanged[0] or "@" in text) else None
                for one, text in zip(found, self.texts, strict=True)
            ]
            self.unchanged = unchanged
        return value

    def worth_trying(self) -> list[int]:
        """Return those that give something, and something else than the ones before: in a loop that is not known."""
        if self.calls > 1:
            return [k for k, one in enumerate(self.given) if one is not None]
        first = {one: k for k, one in reversed(list(enumerate(self.given))) if one not in (None, self.unchanged)}
        return sorted(first.values())


def _known_by(value: Any) -> tuple[Any, ...]:
    """Return what tells a value from another one."""
    if not isinstance(value, Tensor):
        return type(value), repr(value)
    plain = value.detach().resolve_conj().resolve_neg().contiguous()
    return value.shape, value.dtype, plain.reshape(-1).view(torch.uint8).numpy().tobytes()


def terms(function: ast.FunctionDef, statement: ast.stmt, count: int, kept: Sequence[str] = ()) -> Terms:
    """Return what may be missing in a statement of a method, made of one name at most, of two, or of three.

    Args:
        function: the method.
        statement: one of its statements.
        count: how many names.
        kept: what forward writes on the context, `scale` of `ctx.scale`.
    """
    of_context = [f"{context_of(function)}.{name}" for name in kept if context_of(function)]
    names = [*_names(function, statement), *dict.fromkeys([*_of_the_context(function), *of_context])]
    places = range(len(names))
    forms: list[tuple[str, tuple[int, ...]]] = []
    if count == 1:
        forms = [(one, ()) for one in _OF_NONE] + [(one, (k,)) for k in places for one in _OF_ONE]
    elif count == 2:
        forms = [(one, pair) for pair in combinations(places, 2) for one in _OF_TWO]
        forms += [(one, pair) for pair in permutations(places, 2) for one in _OF_TWO_IN_ORDER]
    else:
        forms = [(one, three) for three in combinations(places, 3) for one in _OF_THREE]
    texts = [_filled(one, "{e}", [names[k] for k in given]) for one, given in forms]
    made = [_compiled(_filled(one, "e", [f"v[{k}]" for k in given])) for one, given in forms]
    return Terms([ast.parse(name, mode="eval").body for name in names], count, texts, made)


def _filled(form: str, expression: str, names: Sequence[str]) -> str:
    return form.format(e=expression, **dict(zip("abc", names, strict=False)))


@cache
def _compiled(formula: str) -> Any:
    return eval(f"lambda e, v: {formula}", {"torch": torch})


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


def _of_the_context(function: ast.FunctionDef) -> list[str]:
    """Return what a method reads of its context, but for the tensors that it unpacks."""
    context = context_of(function)
    found = (
        ast.unparse(node)
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Load)
        and isinstance(node.value, ast.Name)
        and node.value.id == context
        and node.attr not in _OF_TORCH
    )
    return list(dict.fromkeys(found))


#: In this order: what changes least comes first.
CHANGES: tuple[Change, ...] = (
    partial(_other_name_for_it, returned=True),
    _other_order,
    _accumulated,
    _copied,
    _written,
    _other_sign,
    _other_reduction,
    _other_transpose,
    _other_side,
    _other_way,
    _other_end,
    _less,
    _other_number,
    partial(_other_name_for_it, returned=False),
)
