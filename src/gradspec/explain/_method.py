"""The source of a method of a Function, in which one expression or statement can be replaced by another."""

from __future__ import annotations

import ast
import copy
import inspect
import math
import sys
import textwrap
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from gradspec.explain._names import context_of
from gradspec.laws.tensor.support._diagnosis import quietly

#: Where torch.library keeps the methods of an operator.
OF_OPERATOR = {"_backward_fn": "backward", "_setup_context_fn": "setup_context"}
#: What each round of a loop asks first, and how many rounds a loop may take that asks torch for nothing.
_ROUND, _ROUNDS = "_gradspec_round", 10_000


#: The file that another reading of a method is said to be in.
READING = "<another reading>"


@dataclass(frozen=True)
class Place:
    """Where an expression stands in a method, or a statement."""

    node: ast.expr | ast.stmt
    parent: ast.AST
    field: str
    index: int | None
    statement: ast.stmt

    @contextmanager
    def holding(self, other: ast.AST) -> Iterator[None]:
        """Put another expression there for a while."""
        self._put(other)
        try:
            yield
        finally:
            self._put(self.node)

    def _put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


class Method:
    """The source of a method, or of a function that it calls, with one expression that can be replaced."""

    def __init__(self, owner: Any, attribute: str) -> None:
        """Read it.

        Args:
            owner: the class, or the module of the function, or what holds the backward of an operator.
            attribute: of the method or the function.

        Raises:
            OSError: its source is nowhere.
        """
        self.owner, self.attribute = owner, attribute
        self.name = OF_OPERATOR.get(attribute, attribute)
        self.is_forward = self.name in ("forward", "setup_context")
        written: Any = inspect.unwrap(getattr(owner, attribute))
        written = getattr(written, "__func__", written)
        lines, self.first = inspect.getsourcelines(written)
        self.tree = ast.parse(textwrap.dedent("".join(lines)))
        self.function = next(node for node in self.tree.body if isinstance(node, ast.FunctionDef))
        if attribute in OF_OPERATOR:
            self.function.name = self.name
        self.context = context_of(self.function)
        path = Path(written.__code__.co_filename)
        self.file, self.folder, self.closed = path.name, path.parent, written.__code__.co_freevars
        held = zip(written.__code__.co_freevars, written.__closure__ or (), strict=True)
        self.scope = dict(written.__globals__) | {name: cell.cell_contents for name, cell in held}
        self.scope[_ROUND], self.rounds = self._round, 0
        self.loops = any(isinstance(node, ast.While) for node in ast.walk(self.tree))

    def places(self, *, of_all: bool = False) -> Iterator[Place]:
        """Yield its expressions and assignments, the outer ones first; of forward, those of what it keeps, or all."""
        pending: deque[tuple[ast.AST, ast.stmt | None]] = deque([(ast.Module(self.function.body, []), None)])
        while pending:
            parent, statement = pending.popleft()
            for field, value in ast.iter_fields(parent):
                for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
                    if not isinstance(node, ast.AST):
                        continue
                    within = node if isinstance(node, ast.stmt) else statement
                    assert within is not None
                    pending.append((node, within))
                    if isinstance(node, ast.expr | ast.Assign | ast.AugAssign) and (
                        of_all or not self.is_forward or self._is_kept(within)
                    ):
                        yield Place(node, parent, field, index, within)

    def called(self) -> dict[FunctionType, tuple[Any, str]]:
        """Return the functions beside it that it calls, `slope(x)` or `Curve.slope(x)`, with their owners and names."""
        module, found = sys.modules.get(str(self.scope.get("__name__"))), {}
        for node in ast.walk(self.function):
            if not isinstance(node, ast.Call):
                continue
            owner: Any = None
            if isinstance(node.func, ast.Name) and node.func.id not in self.closed:
                owner, name = module, node.func.id
            if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
                owner, name = self.scope.get(node.func.value.id), node.func.attr
            function = getattr(owner, name, None) if isinstance(owner, type | ModuleType) else None
            if isinstance(function, FunctionType) and Path(function.__code__.co_filename).parent == self.folder:
                found[function] = owner, name
        return found

    def numbers(self) -> dict[str, float]:
        """Return the numbers that it has in its formulas, as it writes them: `2 ** 0.5`, `math.sqrt(2)`, a name."""
        found = {}
        for place in self.places(of_all=True):
            value = self._number(place.node) if isinstance(place.node, ast.expr) else None
            # A whole number that is handed to a call may be a dimension.
            if value is not None and (isinstance(value, float) or isinstance(place.parent, ast.BinOp)):
                found[ast.unparse(place.node)] = value
        return found

    def has(self, number: str) -> bool:
        """Whether a number that another method writes has the same names here."""
        return self._number(ast.parse(number, mode="eval").body) is not None

    def _number(self, node: ast.expr) -> float | None:
        names = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
        values = [self.scope.get(one.id) for one in names]
        if any(not isinstance(value, int | float) and value is not math for value in values):
            return None
        calls = [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]
        if any(
            not isinstance(one, ast.Attribute) or self.scope.get(ast.unparse(one.value)) is not math for one in calls
        ):
            return None
        try:
            value = eval(compile(ast.Expression(node), READING, "eval"), self.scope)
        except Exception:
            return None
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    def _is_kept(self, statement: ast.stmt) -> bool:
        if not isinstance(statement, ast.Expr | ast.Assign):
            return False
        told, context = [statement.value] if isinstance(statement, ast.Expr) else statement.targets, self.context
        return len(told) == 1 and any(isinstance(node, ast.Name) and node.id == context for node in ast.walk(told[0]))

    def compiled(self) -> Any:
        """Return the method as its tree has it now; None where that is no Python."""
        scope = dict(self.scope)
        tree = _Rounds().visit(copy.deepcopy(self.tree)) if self.loops else self.tree
        try:
            exec(compile(ast.fix_missing_locations(tree), READING, "exec"), scope)
        except (SyntaxError, TypeError, ValueError):
            return None
        return scope.get(self.function.name)

    def _round(self) -> bool:
        self.rounds += 1
        if self.rounds > _ROUNDS:
            raise RuntimeError(f"more than {_ROUNDS} rounds")
        return True

    def where(self, statement: ast.stmt) -> str:
        """Return the file and the line of a statement."""
        return f"{self.file}:{self.first + statement.lineno - 1}, in {self.name}"


def forward_of(owner: Any, methods: Sequence[Method]) -> list[Method]:
    """Return the methods in which forward is written: itself, what keeps for it, and the functions beside it."""
    own = quietly(lambda: Method(owner, "forward"))
    found = [method for method in methods if method.is_forward and (own is None or method.name != own.name)]
    found += [own] if own is not None else []
    beside = [one for method in found for one in method.called().values()]
    return [*found, *(made for one in beside if (made := quietly(lambda one=one: Method(*one))))]  # type: ignore[misc]


def numbers_of(owner: Any, methods: Sequence[Method]) -> dict[str, float]:
    """Return the numbers of the formulas of forward."""
    return {text: value for method in forward_of(owner, methods) for text, value in method.numbers().items()}


class _Rounds(ast.NodeTransformer):
    """Has each round of a loop counted: in another reading it may have no end."""

    def visit_While(self, node: ast.While) -> ast.AST:
        """Count before the condition."""
        self.generic_visit(node)
        node.test = ast.BoolOp(ast.And(), [ast.Call(ast.Name(_ROUND, ast.Load()), [], []), node.test])
        return node


def first_line(statement: ast.stmt) -> str:
    """Return a statement, and of a loop or a branch what it begins with."""
    return ast.unparse(statement).partition("\n")[0]
