"""Whether a gradient is right once one expression reads otherwise: which line, and what it should say.

Each small mistake has an opposite: a sign is turned, two results change places, a factor or a term comes back. Each is
tried in backward and in what forward keeps for it, and said if all gradients are right with it, on new numbers too.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from gradspec.explain._branches import lines_of
from gradspec.explain._left_out import Terms, is_constant, may_lack, terms
from gradspec.explain._method import OF_OPERATOR, READING, Method, Place, first_line, forward_of, numbers_of
from gradspec.explain._mistakes import (
    CHANGES,
    Change,
    dimension_throughout,
    left_out,
    number_of_forward,
    other_edge,
    other_kept,
)
from gradspec.explain._names import kept_by
from gradspec.explain._wrong import Wrong
from gradspec.law import Reason
from gradspec.laws.tensor.support._call import gradients, outputs, vjp
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._graph import classes_behind, is_of_operator, nodes_behind
from gradspec.laws.tensor.support._spying import in_place_of

#: Gives the gradients of the arguments, by name.
_Gradients = Callable[[], Mapping[str, Tensor | None]]
#: How many operations of torch a search may spend, and how many a reading counts at least; up to how many elements of
#: the arguments it is made.
_OPERATIONS, _LEAST, _ELEMENTS = 300_000, 50, 4096
#: From how many characters on an expression is named by a letter where it stands twice.
_LONG, _LETTER = 24, "E"
#: What an expression is handed to, whose value is then replaced.
_HOOK = "_gradspec_instead"
#: Under which names the search notes what it need not try again, and how many operations are left to it.
_REFUTED, _LEFT = "refuted", "left"


@dataclass(frozen=True)
class _Reading:
    """Another reading of a method that makes the gradients right, and what is said of it."""

    method: Method
    made: Any
    text: str
    reason: Reason


class _Search:
    """Tries other readings, so many and no more."""

    def __init__(self, wrong: Wrong) -> None:
        """Take the gradient that is to become right."""
        self.wrong = wrong
        #: How many operations of torch may still be spent.
        self.left = _OPERATIONS
        #: The readings that are known to mend nothing, or were refuted on other numbers.
        self.refuted: set[str] = wrong.found.setdefault(_REFUTED, set())
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
            numbers = [name for name in kept if name not in _flags(self.wrong)]
            by_name = (partial(dimension_throughout, kept=kept), partial(other_kept, kept=numbers))
            changes = (*by_name, partial(number_of_forward, numbers=numbers_of(cls, methods)), *changes)
        return next((r for one in changes for m in methods if (r := self._with(m, one)) is not None), None)

    def of_more(self, cls: Any) -> Reason | None:
        """Return which factor or term makes them right."""
        methods = self._methods(cls)
        kept = [one for method in methods if method.is_forward for one in kept_by(method.function)]
        backward = [method for method in methods if not method.is_forward]
        numbers = [text for text, value in numbers_of(cls, methods).items() if abs(value) not in (0, 1)]
        return next((r for one in backward if (r := self._with_more(one, kept, numbers)) is not None), None)

    def _methods(self, cls: Any) -> list[Method]:
        """Return what a Function is written in: its methods, and the functions beside it that backward alone calls."""
        owner = quietly(lambda: _holder(cls))
        if owner is None:
            return []  # of lists of tensors, which torch wraps
        methods = [made for name in _methods(owner) if (made := quietly(lambda name=name: Method(owner, name)))]  # type: ignore[misc]
        known = {function for made in forward_of(owner, methods) for function in made.called()}
        for method in methods:  # which grows: what is called may call others
            for function, (beside, name) in () if method.is_forward else method.called().items():
                if function not in known and (made := quietly(lambda: Method(beside, name))):  # noqa: B023  # called at once
                    methods.append(made)
                known.add(function)
        return methods

    def _with(self, method: Method, change: Change) -> Reason | None:
        tried = {ast.unparse(method.function)}
        for place in list(method.places()):
            for other in change(place.node, method.function):
                found = self._said(method, place, other, tried)
                if found is not None or self.left <= 0:
                    return found
        return None

    def _said(self, method: Method, place: Place, other: ast.expr | ast.stmt, tried: set[str]) -> Reason | None:
        if _decides(place):
            return None
        before, node = first_line(place.statement), ast.unparse(place.node)
        with place.holding(other):
            statement = first_line(other if isinstance(other, ast.stmt) else place.statement)
            text = ast.unparse(method.function)
            if text in tried or text in self.refuted:
                return None
            tried.add(text)
            made = method.compiled()
            is_right = self._is_right(method, made, may_write=isinstance(other, ast.stmt))
            new_way = self._lines(method, made) if is_right and _is_of_a_way(place, other) else None
        is_dead = is_right and self._ends_a_mask(method, place, other)
        if is_dead or (new_way is not None and new_way != self._lines(method, method.compiled())):
            self.refuted.add(text)
            return None
        if not is_right and not self._is_partial and self.left > 0:
            self.refuted.add(text)
        if not is_right and (not self._is_partial or self.partial is not None):
            return None
        new = ast.unparse(other)
        # A name or a number may stand in a line more than once.
        old, new = (before, statement) if isinstance(place.node, ast.Name | ast.Constant) else (node, new)
        how = f"without `{old}`" if _is_nothing(other, place.parent) else _in_place_of(old, new)
        said = f"{how} ({method.where(place.statement)})"
        if is_right:
            reason = Reason(kind="repair", words=f"right {said}", evidence={"statement": statement})
            self.reading = _Reading(method, made, text, reason)
            return reason
        evidence = {"statement": statement, "argument": self.wrong.name}
        reason = Reason(kind="repair", words=f"the gradient of `{self.wrong.name}` is right {said}", evidence=evidence)
        self.partial = _Reading(method, made, text, reason)
        return None

    def _is_right(self, method: Method, made: Any, *, may_write: bool = False) -> bool:
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

    def _lines(self, method: Method, made: Any) -> frozenset[tuple[str, int]]:
        """Return the lines that run with another reading."""
        with in_place_of(method.owner, method.attribute, made):
            run = self._of_a_call if method.is_forward else self._of_backward
            lines = lines_of(run, method.scope["__name__"])
        first = method.function.body[0].lineno  # what is put there may have been parsed by itself
        return frozenset((file, line) for file, line in lines if file != READING or line >= first)

    def _ends_a_mask(self, method: Method, place: Place, other: ast.expr | ast.stmt) -> bool:
        """Whether what is compared makes a mask that is the same everywhere of one that is not: it is then left out."""
        within = (
            one for one in method.places() if one.statement is place.statement and isinstance(one.node, ast.Compare)
        )
        compared = next((one for one in within if _is_within(place.node, one.node)), None)
        if compared is None or place.node is compared.node:
            return False
        before, after = (self._is_mixed(method, compared, place, node) for node in (place.node, other))
        return before and not after

    def _is_mixed(self, method: Method, compared: Place, place: Place, node: ast.expr | ast.stmt) -> bool:
        """Whether a comparison is true of some elements and not of others, with an expression in a place of it."""
        seen: list[bool] = []

        def look(value: Any) -> Any:
            seen.append(isinstance(value, Tensor) and bool(value.any()) and not bool(value.all()))
            return value

        method.scope[_HOOK] = look
        try:
            assert isinstance(compared.node, ast.expr)
            with place.holding(node), compared.holding(ast.Call(ast.Name(_HOOK, ast.Load()), [compared.node], [])):
                made = method.compiled()
            with in_place_of(method.owner, method.attribute, made):
                quietly(self._of_a_call)
        finally:
            del method.scope[_HOOK]
        return any(seen)

    def _holds(self, how: _Gradients) -> bool:
        bounded = self.wrong.bounded()
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
        self._is_partial = all(wrong.is_right_for(name, got) for name in wrong.right_already)
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

    def _with_more(self, method: Method, kept: Sequence[str], numbers: Sequence[str]) -> Reason | None:
        """Ask of each expression whether a factor or a term is missing there, made of what has a name before it."""
        places = [one for one in method.places() if may_lack(one.node, one.parent)]
        known = [text for text in numbers if method.has(text)]
        constant, others = ([one for one in places if is_constant(one.node) is first] for first in (True, False))
        for among, count in product((constant, others), (1, 2, 3)):
            for place in among:
                made = terms(method.function, place.statement, count, kept, known)
                found = self._missing(method, place, made)
                if found is not None or self.left <= 0:
                    return found
        return None

    def _missing(self, method: Method, place: Place, made: Terms) -> Reason | None:
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
            for alike in made.worth_trying():
                made.chosen = alike[0]
                if not self._is_right(method, hooked) and not (self._is_partial and self.partial is None):
                    continue
                for text in (made.texts[k] for k in alike):  # one may be refuted where another one is not
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


def _decides(place: Place) -> bool:
    """Whether an expression decides about a branch or a loop, and is no number: with another one a branch is dead."""
    tests = [one.test for one in ast.walk(place.statement) if isinstance(one, ast.If | ast.While | ast.IfExp)]
    is_test = any(_is_within(place.node, test) for test in tests)
    return is_test and not isinstance(place.node, ast.Constant | ast.Compare)


def _is_within(node: ast.AST, tree: ast.AST) -> bool:
    return any(one is node for one in ast.walk(tree))


def _is_of_a_way(place: Place, other: ast.AST) -> bool:
    """Whether an expression is no test of a branch or of a loop: with another one the same lines run.

    What is compared for equality is none either: with another number there the branch is merely dead.
    """
    is_test = isinstance(place.statement, ast.If | ast.While | ast.For)
    ops = place.parent.ops if isinstance(place.parent, ast.Compare) else []
    return isinstance(other, ast.expr) and (not is_test or any(isinstance(op, ast.Eq | ast.NotEq) for op in ops))


def _in_place_of(old: str, new: str) -> str:
    """Return in words what stands in place of an expression, which is a letter there if it is long and stands twice."""
    if len(old) < _LONG or new.count(old) < 2:
        return f"with `{new}` in place of `{old}`"
    return f"with `{new.replace(f'({old})', _LETTER).replace(old, _LETTER)}` in place of `{_LETTER} = {old}`"


def _is_nothing(other: ast.AST, parent: ast.AST) -> bool:
    """Whether nothing is done where something was: in a statement whose value nobody takes, a name does nothing."""
    return isinstance(other, ast.Pass) or (isinstance(parent, ast.Expr) and isinstance(other, ast.Name))


def repaired(wrong: Wrong) -> Reason | None:
    """Whether all gradients are right once one expression of backward, or of what forward keeps, is another one."""
    return _first(wrong, "repaired", lambda search, cls: search.of(cls, CHANGES) or search.of_more(cls))


def of_an_edge(wrong: Wrong) -> Reason | None:
    """Whether they are once what is equal belongs to the other side of a comparison."""
    return _first(wrong, "edge", lambda search, cls: search.of(cls, (other_edge,)))


def changed(wrong: Wrong) -> Reason | None:
    """Whether they are once one expression is another one, with nothing added that a backward may have left out."""
    return _first(wrong, "changed", lambda search, cls: search.of(cls, CHANGES))


def without_a_call(wrong: Wrong) -> Reason | None:
    """Whether they are once one call, factor or term is left out."""
    return _first(wrong, "without", lambda search, cls: search.of(cls, (left_out,)))


def refute(wrong: Wrong, reason: Reason) -> None:
    """Note that a reading does not hold elsewhere, so that the search goes on behind it."""
    for name in ("repaired", "edge", "changed", "without"):
        reading = wrong.found.get(name)
        if reading is not None and reading.reason is reason:
            wrong.found[_REFUTED].add(reading.text)
            del wrong.found[name]


def _first(wrong: Wrong, name: str, of: Callable[[_Search, Any], Reason | None]) -> Reason | None:
    search, behind = _Search(wrong), _behind(wrong)
    known = wrong.found.get(name)
    if known is not None:
        return search.again(known) if behind else None
    search.left = wrong.found.get(_LEFT, _OPERATIONS)
    for cls in behind:
        if of(search, cls) is not None:
            break
    wrong.found[_LEFT] = search.left
    reading = search.reading or search.partial
    if reading is None:
        return None
    wrong.found[name] = reading
    return reading.reason


def _behind(wrong: Wrong) -> list[Any]:
    """Return the Functions of a call; none where no reading is tried."""
    if sum(t.numel() for t in wrong.inputs.tensors()) > _ELEMENTS or not bool(wrong.expected.any()):
        return []  # many a reading is zero everywhere
    return classes_behind(_called(wrong))


def _flags(wrong: Wrong) -> set[str]:
    """Return the names under which forward keeps True or False on its context."""
    kept = [getattr(node, "__dict__", {}) for node in nodes_behind(_called(wrong))]
    return {name for held in kept for name, value in held.items() if isinstance(value, bool)}


def _called(wrong: Wrong) -> Any:
    return wrong.trial.spec.function(*wrong.inputs.args(wrong.inputs.leaves()))


def _holder(cls: Any) -> Any:
    """Return what has the methods of a Function: of an operator of torch.library, where its backward is registered."""
    if not is_of_operator(cls):
        return cls
    backward = cls.backward
    return dict(zip(backward.__code__.co_freevars, backward.__closure__, strict=True))["info"].cell_contents


def _methods(holder: Any) -> list[str]:
    if hasattr(holder, "_backward_fn"):
        return list(OF_OPERATOR)
    return ["backward", "forward" if holder.setup_context is Function.setup_context else "setup_context"]
