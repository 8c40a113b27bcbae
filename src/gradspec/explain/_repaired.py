"""Whether a gradient is right once one expression reads otherwise: which line, and what it should say.

Each small mistake has an opposite: a sign is turned, two results change places, a factor or a term comes back. Each is
tried in backward and in what forward keeps for it, and said if all gradients are right with it, on new numbers too.
"""

from __future__ import annotations

import ast
import copy
import inspect
import sys
import textwrap
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from types import FunctionType
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from gradspec.explain._left_out import Terms, is_constant, may_lack, terms
from gradspec.explain._mistakes import CHANGES, Change, context_of, dimension_throughout, kept_by, other_edge
from gradspec.explain._wrong import Wrong
from gradspec.law import Reason
from gradspec.laws.tensor.support._bounded import Bounded
from gradspec.laws.tensor.support._call import gradients, outputs, vjp
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._graph import classes_behind, is_of_operator
from gradspec.laws.tensor.support._spying import in_place_of

#: Where torch.library keeps the methods of an operator.
_OF_OPERATOR = {"_backward_fn": "backward", "_setup_context_fn": "setup_context"}
#: Gives the gradients of the arguments, by name.
_Gradients = Callable[[], Mapping[str, Tensor | None]]
#: How many operations of torch a search may spend, and how many a reading counts at least; up to how many elements of
#: the arguments it is made.
_OPERATIONS, _LEAST, _ELEMENTS = 300_000, 50, 4096
#: What an expression is handed to, whose value is then replaced; and what each round of a loop asks first.
_HOOK, _ROUND = "_gradspec_instead", "_gradspec_round"
#: How many rounds a loop may take that asks torch for nothing.
_ROUNDS = 10_000


@dataclass(frozen=True)
class _Place:
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


class _Method:
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
        self.name = _OF_OPERATOR.get(attribute, attribute)
        self.is_forward = self.name in ("forward", "setup_context")
        written: Any = inspect.unwrap(getattr(owner, attribute))
        written = getattr(written, "__func__", written)
        lines, self.first = inspect.getsourcelines(written)
        self.tree = ast.parse(textwrap.dedent("".join(lines)))
        self.function = next(node for node in self.tree.body if isinstance(node, ast.FunctionDef))
        if attribute in _OF_OPERATOR:
            self.function.name = self.name
        self.context = context_of(self.function)
        self.file = Path(written.__code__.co_filename).name
        held = zip(written.__code__.co_freevars, written.__closure__ or (), strict=True)
        self.scope = dict(written.__globals__) | {name: cell.cell_contents for name, cell in held}
        self.scope[_ROUND], self.rounds = self._round, 0
        self.loops = any(isinstance(node, ast.While) for node in ast.walk(self.tree))

    def places(self) -> Iterator[_Place]:
        """Yield its expressions and assignments, the outer ones first; of forward, those of what it keeps."""
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
                        not self.is_forward or self._is_kept(within)
                    ):
                        yield _Place(node, parent, field, index, within)

    def called(self) -> dict[str, Any]:
        """Return the functions of its module that it calls by name."""
        names = [n.func.id for n in ast.walk(self.function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
        found = {name: self.scope.get(name) for name in names}
        return {
            name: sys.modules[value.__module__]
            for name, value in found.items()
            if isinstance(value, FunctionType)
            and value.__module__ == self.scope.get("__name__")
            and vars(sys.modules.get(value.__module__)).get(name) is value
        }

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
            exec(compile(ast.fix_missing_locations(tree), "<another reading>", "exec"), scope)
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


class _Rounds(ast.NodeTransformer):
    """Has each round of a loop counted: in another reading it may have no end."""

    def visit_While(self, node: ast.While) -> ast.AST:
        """Count before the condition."""
        self.generic_visit(node)
        node.test = ast.BoolOp(ast.And(), [ast.Call(ast.Name(_ROUND, ast.Load()), [], []), node.test])
        return node


@dataclass(frozen=True)
class _Reading:
    """Another reading of a method that makes the gradients right, and what is said of it."""

    method: _Method
    made: Any
    reason: Reason


class _Search:
    """Tries other readings, so many and no more."""

    def __init__(self, wrong: Wrong) -> None:
        """Take the gradient that is to become right."""
        self.wrong = wrong
        #: How many operations of torch may still be spent.
        self.left = _OPERATIONS
        #: The reading that made all gradients right, and the first that made the one in question right.
        self.reading: _Reading | None = None
        self.partial: _Reading | None = None
        self._is_partial = False

    def again(self, reading: _Reading) -> Reason | None:
        """Return what a reading shows that was found on other numbers, if it makes the gradients right here, too."""
        is_right = self._is_right(reading.method, reading.made)
        return reading.reason if is_right or (self._is_partial and "argument" in reading.reason.evidence) else None

    def of(self, cls: Any, changes: Sequence[Change]) -> Reason | None:
        """Return which of some changes makes the gradients of a Function right, the likeliest mistakes first."""
        methods = self._methods(cls)
        kept = [name for method in methods if method.is_forward for name in kept_by(method.function)]
        if changes is CHANGES:
            changes = (partial(dimension_throughout, kept=kept), *changes)
        return next((r for one in changes for m in methods if (r := self._with(m, one)) is not None), None)

    def of_more(self, cls: Any) -> Reason | None:
        """Return which factor or term makes them right."""
        methods = self._methods(cls)
        kept = [one for method in methods if method.is_forward for one in kept_by(method.function)]
        backward = [method for method in methods if not method.is_forward]
        return next((found for method in backward if (found := self._with_more(method, kept)) is not None), None)

    def _methods(self, cls: Any) -> list[_Method]:
        """Return what a Function is written in: its methods, and the functions that backward alone calls."""
        owner = quietly(lambda: _holder(cls))
        if owner is None:
            return []  # of lists of tensors, which torch wraps
        methods = [made for name in _methods(owner) if (made := quietly(lambda name=name: _Method(owner, name)))]  # type: ignore[misc]
        before = {name for method in methods if method.is_forward for name in method.called()}
        for name, module in [one for method in methods if method.name == "backward" for one in method.called().items()]:
            if name not in before and (made := quietly(lambda: _Method(module, name))):  # noqa: B023  # called at once
                methods.append(made)
        return methods

    def _with(self, method: _Method, change: Change) -> Reason | None:
        tried = {ast.unparse(method.function)}
        for place in list(method.places()):
            for other in change(place.node, method.function):
                found = self._said(method, place, other, tried)
                if found is not None or self.left <= 0:
                    return found
        return None

    def _said(self, method: _Method, place: _Place, other: ast.expr | ast.stmt, tried: set[str]) -> Reason | None:
        before, node = _first_line(place.statement), ast.unparse(place.node)
        with place.holding(other):
            statement = _first_line(other if isinstance(other, ast.stmt) else place.statement)
            text = ast.unparse(method.function)
            if text in tried:
                return None
            tried.add(text)
            made = method.compiled()
            is_right = self._is_right(method, made, may_write=isinstance(other, ast.stmt))
            if not is_right and (not self._is_partial or self.partial is not None):
                return None
            new = ast.unparse(other)
        # A name or a number may stand in a line more than once.
        old, new = (before, statement) if isinstance(place.node, ast.Name | ast.Constant) else (node, new)
        how = f"without `{old}`" if isinstance(other, ast.Pass) else f"with `{new}` in place of `{old}`"
        said = f"{how} ({method.where(place.statement)})"
        if is_right:
            reason = Reason(kind="repair", words=f"right {said}", evidence={"statement": statement})
            self.reading = _Reading(method, made, reason)
            return reason
        evidence = {"statement": statement, "argument": self.wrong.name}
        reason = Reason(kind="repair", words=f"the gradient of `{self.wrong.name}` is right {said}", evidence=evidence)
        self.partial = _Reading(method, made, reason)
        return None

    def _is_right(self, method: _Method, made: Any, *, may_write: bool = False) -> bool:
        self._is_partial = False
        method.rounds = 0
        self.left -= _LEAST
        if made is None or self.left < 0:
            return False
        how = self._of_a_call if method.is_forward else self._of_backward
        with in_place_of(method.owner, method.attribute, made):
            found = quietly(lambda: self._holds(how))
        if how is self._of_backward and (found is None or may_write):
            again = quietly(how)
            if again is None or not _are_equal(again, self.wrong.given):  # it has written to what forward saved
                del self._of_backward
        return bool(found)

    def _holds(self, how: _Gradients) -> bool:
        bounded = Bounded(self.wrong.most_operations)
        try:
            with bounded:
                got = how()
        finally:
            self.left -= max(0, bounded.count - _LEAST)
        wrong = self.wrong
        if not wrong.is_right_for(wrong.name, got):
            return False
        if wrong.is_mended(got):
            return True
        # No right gradient may have become wrong.
        self._is_partial = self.partial is None and all(wrong.is_right_for(name, got) for name in wrong.right_already)
        return False

    def _of_a_call(self) -> Mapping[str, Tensor | None]:
        wrong = self.wrong
        return vjp(wrong.trial.spec.function, wrong.inputs, tuple(t.clone() for t in wrong.v))

    @cached_property
    def _of_backward(self) -> _Gradients:
        """What runs backward through a graph that stays, for what is in backward; a call where that is not the same."""
        wrong, leaves = self.wrong, self.wrong.inputs.leaves()
        y = outputs(wrong.trial.spec.function(*wrong.inputs.args(leaves)))

        def again() -> Mapping[str, Tensor | None]:
            return gradients(y, leaves, tuple(t.clone() for t in wrong.v), retain_graph=True)

        runs = [quietly(again) for _ in range(2)]  # it may write to what forward has saved
        return again if all(run is not None and _are_equal(run, wrong.given) for run in runs) else self._of_a_call

    def _with_more(self, method: _Method, kept: Sequence[str]) -> Reason | None:
        """Ask of each expression whether a factor or a term is missing there, made of what has a name before it."""
        places = [one for one in method.places() if may_lack(one.node, one.parent)]
        constant, others = ([one for one in places if is_constant(one.node) is first] for first in (True, False))
        for among, count in product((constant, others), (1, 2, 3)):
            for place in among:
                made = terms(method.function, place.statement, count, kept)
                found = self._missing(method, place, made)
                if found is not None or self.left <= 0:
                    return found
        return None

    def _missing(self, method: _Method, place: _Place, made: Terms) -> Reason | None:
        if not made.texts:
            return None
        # Its value goes through a hook, so that each of the terms is tried without being compiled by itself.
        assert isinstance(place.node, ast.expr)
        handed = ast.Call(ast.Name(_HOOK, ast.Load()), [place.node, ast.List(made.names, ast.Load())], [])
        method.scope[_HOOK] = made
        try:
            with place.holding(handed):
                hooked = method.compiled()
            with in_place_of(method.owner, method.attribute, hooked):
                quietly(self._of_backward)  # which notes what each of them gives
            for k in made.worth_trying():
                made.chosen, text = k, made.texts[k]
                if self._is_right(method, hooked) or self._is_partial:
                    other = ast.parse(text.format(e=f"({ast.unparse(place.node)})"), mode="eval").body
                    if (found := self._said(method, place, other, set())) is not None:
                        return found
        finally:
            del method.scope[_HOOK]
        return None


def _are_equal(one: Mapping[str, Tensor | None], other: Mapping[str, Tensor | None]) -> bool:
    return all(
        a is b if a is None or b is None else torch.equal(a, b) for a, b in ((one[name], other[name]) for name in other)
    )


def repaired(wrong: Wrong) -> Reason | None:
    """Whether all gradients are right once one expression of backward, or of what forward keeps, is another one."""
    return _first(wrong, "repaired", lambda search, cls: search.of(cls, CHANGES) or search.of_more(cls))


def of_an_edge(wrong: Wrong) -> Reason | None:
    """Whether they are once what is equal belongs to the other side of a comparison."""
    return _first(wrong, "edge", lambda search, cls: search.of(cls, (other_edge,)))


def _first(wrong: Wrong, name: str, of: Callable[[_Search, Any], Reason | None]) -> Reason | None:
    search, behind = _Search(wrong), _behind(wrong)
    known = wrong.found.get(name)
    if known is not None and behind and (reason := search.again(known)) is not None:
        return reason
    reason = next((found for cls in behind if (found := of(search, cls)) is not None), None)
    reading = search.reading or search.partial
    wrong.found.setdefault(name, reading)
    return reason or (reading.reason if reading is not None else None)


def _behind(wrong: Wrong) -> list[Any]:
    """Return the Functions of a call; none where no reading is tried."""
    if sum(t.numel() for t in wrong.inputs.tensors()) > _ELEMENTS or not bool(wrong.expected.any()):
        return []  # many a reading is zero everywhere
    y = wrong.trial.spec.function(*wrong.inputs.args(wrong.inputs.leaves()))
    return classes_behind(y)


def _first_line(statement: ast.stmt) -> str:
    """Return a statement, and of a loop or a branch what it begins with."""
    return ast.unparse(statement).partition("\n")[0]


def _holder(cls: Any) -> Any:
    """Return what has the methods of a Function: of an operator of torch.library, where its backward is registered."""
    if not is_of_operator(cls):
        return cls
    backward = cls.backward
    return dict(zip(backward.__code__.co_freevars, backward.__closure__, strict=True))["info"].cell_contents


def _methods(holder: Any) -> list[str]:
    if hasattr(holder, "_backward_fn"):
        return list(_OF_OPERATOR)
    return ["backward", "forward" if holder.setup_context is Function.setup_context else "setup_context"]
