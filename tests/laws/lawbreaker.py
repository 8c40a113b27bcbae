"""Laws broken on purpose: one statement of a law's file is changed, and the law is made anew of it."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from types import ModuleType

from gradspec.law import HOLDS, Law

#: The calls that find something: without one of them the law finds less.
FINDERS = ("broken", "compare", "compare_all", "judge", "judge_edge", "judge_run", "raised")
#: Those that compare their third argument with their fourth.
COMPARISONS = ("compare", "compare_all")


@dataclass(frozen=True)
class Broken:
    """A law with one change."""

    #: In words: "line 41: compare holds".
    name: str
    law: Law


def always_holding(law: Law) -> Broken:
    """Return the law that holds whatever it is shown."""
    tree = _tree(law)
    (check,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == law.check.__name__]
    check.body.insert(0, ast.Return(ast.Name("HOLDS", ast.Load())))
    return Broken("always holds", _made(law, tree))


def blinded(law: Law, *, but: Sequence[str] = ()) -> Iterator[Broken]:
    """Yield the law once for each place where it finds something: there it finds nothing.

    Args:
        law: the sound law.
        but: the functions of its file that are left alone.
    """
    yield from _changed(law, "holds", lambda call: ast.Name("HOLDS", ast.Load()), FINDERS, but)


def compared_with_itself(law: Law) -> Iterator[Broken]:
    """Yield the law once for each comparison: what was got is compared with itself."""

    def same(call: ast.Call) -> ast.expr:
        return ast.Call(call.func, [*call.args[:3], call.args[2]], call.keywords)

    yield from _changed(law, "compares with itself", same, COMPARISONS)


def _changed(law, words, change, names, but=()) -> Iterator[Broken]:
    for place in range(len(_calls(_tree(law), names, but))):
        tree = _tree(law)
        call = _calls(tree, names, but)[place]
        name = f"line {call.lineno}: {call.func.id} {words}"
        yield Broken(name, _made(law, _Replacing(call, change(deepcopy(call))).visit(tree)))


class _Replacing(ast.NodeTransformer):
    def __init__(self, old: ast.expr, new: ast.expr) -> None:
        self.old, self.new = old, new

    def visit(self, node):
        return self.new if node is self.old else super().visit(node)


def _calls(tree: ast.Module, names: tuple[str, ...], but: Sequence[str]) -> list[ast.Call]:
    parts = [part for part in tree.body if getattr(part, "name", "") not in but]
    found = [node for part in parts for node in ast.walk(part) if isinstance(node, ast.Call)]
    return [call for call in found if isinstance(call.func, ast.Name) and call.func.id in names]


def _tree(law: Law) -> ast.Module:
    return ast.parse(inspect.getsource(sys.modules[law.check.__module__]))


def _made(law: Law, tree: ast.Module) -> Law:
    home = sys.modules[law.check.__module__]
    module = ModuleType(home.__name__)
    module.__file__ = home.__file__
    module.__dict__["HOLDS"] = HOLDS  # which not every law imports
    exec(compile(ast.fix_missing_locations(tree), str(home.__file__), "exec"), module.__dict__)
    (made,) = [value for value in vars(module).values() if isinstance(value, Law) and value.name == law.name]
    return made
