"""What a backward may have left out: a factor or a term, made of what has a name before it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, permutations
from typing import Any

import torch
from torch import Tensor

from gradspec.explain._names import OF_TORCH, names_in, names_kept, read_of_the_context, unread_in
from gradspec.laws.tensor.support._diagnosis import quietly

#: What a factor or a term that is missing is made of: of nothing else, of a name, of two, of three. In this order.
_OF_NONE = (
    *("{e}.conj()", "{e}.real", "1 - {e}", "1 + {e}", "{e} - 1", "2 * {e}", "{e} / 2", "3 * {e}", "{e} / 3"),
    *("1 / {e}", "{e} * {e}", "{e}.sqrt()"),
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
_OF_A_NUMBER = ("{e} * {a}", "{e} / {a}", "{e} + {a}", "{e} - {a}", "{e} * {a} * {a}", "{e} / {a} / {a}")
_OF_TWO = ("{e} * {a} * {b}", "{e} + {a} * {b}", "{e} - {a} * {b}", "{e} / {a} / {b}")
_OF_TWO_IN_ORDER = (
    *("{e} + {a} * (1 - {b})", "{e} - {a} * (1 - {b})", "{e} * {a} / {b}", "{e} + {a} / {b}", "{e} - {a} / {b}"),
    *("{e} + {a} @ {b}", "{e} - {a} @ {b}", "{e} + {a}.mT @ {b}", "{e} + {a} @ {b}.mT"),
    *("{e} * {a} / (1 - {b})", "{e} + torch.linalg.cross({a}, {b})"),
    *("{e} * ({a} > {b})", "{e} * ({a} >= {b})", "{e} * ({a} != {b})", "{e} * ({a} != {b})[..., None]"),
)
_OF_THREE = ("{e} + {a} * {b} * {c}", "{e} - {a} * {b} * {c}")


def may_lack(node: ast.AST, parent: ast.AST) -> bool:
    """Whether a factor or a term may be missing at a node: a value, and no name of a method or a dimension."""
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float) and isinstance(parent, ast.BinOp)
    if not isinstance(node, ast.Name | ast.BinOp | ast.UnaryOp | ast.Call | ast.Attribute):
        return False
    if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load) or _is_a_condition(node, parent):
        return False
    return not (isinstance(parent, ast.Call) and parent.func is node) and not (
        isinstance(node, ast.Attribute) and node.attr in OF_TORCH
    )


def _is_a_condition(node: ast.expr, parent: ast.AST) -> bool:
    """Whether Python asks a node for true or false."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return True
    if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
        return True
    return isinstance(parent, ast.BoolOp) or getattr(parent, "test", None) is node


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
    #: The places of the names that each is made of.
    uses: list[tuple[int, ...]]
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
            found = [quietly(lambda one=one: _known_by(_number(one(value, named)))) for one in self.made]  # type: ignore[misc]
            # Another shape is meant by a single name, by what multiplies matrices, or where one number meets a tensor.
            shapes = self.count == 1 or not isinstance(value, Tensor) or value.ndim == 0
            flags = {k for k, one in enumerate(named) if isinstance(one, bool)}  # which are no numbers of a formula
            floats = {k for k, one in enumerate(named) if isinstance(one, Tensor) and one.is_floating_point()}
            self.given = [
                one
                if one is not None
                and (shapes or one[0] == unchanged[0] or "@" in text)
                and not flags & {*used}
                and not ("!=" in text and {*used} <= floats)  # nobody asks whether two results of arithmetic are equal
                else None
                for one, text, used in zip(found, self.texts, self.uses, strict=True)
            ]
            self.unchanged = unchanged
        return value

    def worth_trying(self) -> list[list[int]]:
        """Return those that give something, with those that give the same, the shortest first; in a loop each alone."""
        if self.calls > 1:
            return [[k] for k, one in enumerate(self.given) if one is not None]
        alike: dict[Any, list[int]] = {}
        for k, one in enumerate(self.given):
            if one not in (None, self.unchanged):
                alike.setdefault(one, []).append(k)
        return [sorted(places, key=lambda k: len(self.texts[k])) for places in alike.values()]


def _number(value: Any) -> Any:
    """Return what is a tensor or a number: a shape, repeated, asks for more memory than there is."""
    if isinstance(value, Sequence):
        raise TypeError("no number")
    return value


def _known_by(value: Any) -> tuple[Any, ...]:
    """Return what tells a value from another one."""
    if not isinstance(value, Tensor):
        return type(value), repr(value)
    plain = value.detach().resolve_conj().resolve_neg().contiguous()
    return value.shape, value.dtype, plain.reshape(-1).view(torch.uint8).numpy().tobytes()


def terms(
    function: ast.FunctionDef, statement: ast.stmt, count: int, kept: Sequence[str] = (), numbers: Sequence[str] = ()
) -> Terms:
    """Return what may be missing in a statement of a method, made of one name at most, of two, or of three.

    Args:
        function: the method.
        statement: one of its statements.
        count: how many names.
        kept: what forward writes on the context, `scale` of `ctx.scale`.
        numbers: what forward computes with, as it writes it, of which one is a factor or a term.
    """
    of_context = dict.fromkeys([*read_of_the_context(function), *names_kept(function, kept)])
    # What is saved and not read comes first.
    unread = unread_in(function)
    names = [*sorted(names_in(function, statement), key=lambda name: name not in unread), *of_context]
    places = range(len(names))
    forms: list[tuple[str, tuple[int, ...]]] = []
    if count == 1:
        forms = [(one, ()) for one in _OF_NONE] + [(one, (k,)) for k in places for one in _OF_ONE]
        forms += _at_the_same_place(names, statement)
        forms += [(one, (len(names) + k,)) for k in range(len(numbers)) for one in _OF_A_NUMBER]
        names += numbers
    elif count == 2:
        forms = [(one, pair) for pair in combinations(places, 2) for one in _OF_TWO]
        forms += [(one, pair) for pair in permutations(places, 2) for one in _OF_TWO_IN_ORDER]
    else:
        forms = [(one, three) for three in combinations(places, 3) for one in _OF_THREE]
    texts = [_filled(one, "{e}", [names[k] for k in given]) for one, given in forms]
    made = [_compiled(_filled(one, "e", [f"v[{k}]" for k in given])) for one, given in forms]
    return Terms(
        [ast.parse(name, mode="eval").body for name in names], count, texts, made, [given for _, given in forms]
    )


def _at_the_same_place(names: Sequence[str], statement: ast.stmt) -> list[tuple[str, tuple[int, ...]]]:
    """Return the forms of one name at a place that a statement reads, as of `s[t]` beside `v[t]` in a loop over `t`."""
    read = [one.slice for one in ast.walk(statement) if isinstance(one, ast.Subscript)]
    used = [names.index(name) for name in dict.fromkeys(ast.unparse(one) for one in read) if name in names]
    forms = [one.replace("{a}", "{a}[{b}]") for one in _OF_ONE]
    return [(one, (k, place)) for one in forms for place in used for k in range(len(names)) if k not in used]


def _filled(form: str, expression: str, names: Sequence[str]) -> str:
    return form.format(e=expression, **dict(zip("abc", names, strict=False)))


@cache
def _compiled(formula: str) -> Any:
    return eval(f"lambda e, v: {formula}", {"torch": torch})
