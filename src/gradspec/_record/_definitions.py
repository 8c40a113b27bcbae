"""The definitions of a module: its top-level statements, the names that each binds, and what it mentions."""

from __future__ import annotations

import ast
import doctest
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from gradspec._record._mentions import COMPREHENSIONS, Mentions, Target, chain_of, imported, statements_of
from gradspec._record._modules import Module
from gradspec._record._normal_form import docstring_node, normal_form, short

#: Our classes whose `__post_init__` does nothing but refuse: of specs, which are made at import, and of cases, each of
#: which is made when a run is planned.
REFUSING = frozenset({"Case", "Spec", "FunctionSpec", "ModuleSpec", "TextSpec"})

#: Methods that change what they are called on.
_MUTATORS = frozenset({"append", "add", "extend", "update", "insert", "setdefault", "register", "appendleft"})


@dataclass(frozen=True, eq=False)
class Definition:
    """A top-level statement of a module, as it counts for a key."""

    module: Module
    node: ast.stmt
    #: The names that it binds in the module.
    binds: frozenset[str]

    @property
    def has_effect(self) -> bool:
        """Whether running it may do more than bind names."""
        return _has_effect(self.node)

    @property
    def decorators(self) -> list[ast.expr]:
        """The decorators of a class or function."""
        return getattr(self.node, "decorator_list", [])

    @cached_property
    def hash(self) -> str:
        """The hash of its normal form, without docstrings."""
        return short(normal_form(self.node))

    @cached_property
    def documented_hash(self) -> str:
        """The hash of its normal form, with docstrings."""
        return short(normal_form(self.node, docstrings=True))

    @cached_property
    def mentions(self) -> Mentions:
        """What it mentions."""
        return Mentions.of([self.node], self.module)

    @cached_property
    def changes(self) -> frozenset[str]:
        """The names of what it sets an attribute or an item of, adds something to, or binds in its module."""
        return frozenset(_changed_names(self.node))

    @cached_property
    def examples(self) -> Mentions:
        """What the examples of its docstrings mention."""
        return Mentions.of(_examples(self.node), self.module)


def _changed_names(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Global):
            yield from part.names
        elif isinstance(part, ast.Subscript | ast.Attribute) and not isinstance(part.ctx, ast.Load):
            yield from chain_of(part.value)[:1]
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _MUTATORS:
            yield from chain_of(part.func.value)[:1]


def definitions(module: Module) -> tuple[tuple[Definition, ...], dict[str, set[Target]], list[str]]:
    """Return the definitions of a module, what its imports bind, and the modules from which it imports `*`.

    Raises:
        SyntaxError: the file is not Python.
        OSError: the file cannot be read.
        UnicodeDecodeError: the file is not text.
    """
    tree = ast.parse(module.file.read_text(encoding="utf-8"))
    found, imports, stars = [], dict[str, set[Target]](), list[str]()
    for node in tree.body:
        if docstring_node(tree) is not None and node is tree.body[0]:
            continue
        names = set[str]()
        for part in _at_module_level(node):
            if isinstance(part, ast.Import | ast.ImportFrom):
                for name, target in imported(part, module):
                    if name == "*":
                        stars.append(target[0])
                    else:
                        imports.setdefault(name, set()).add(target)
            else:
                names |= set(_bound(part))
        if not isinstance(node, ast.Import | ast.ImportFrom):
            found.append(Definition(module, _without_refusals(node, module), frozenset(names)))
    return tuple(found), imports, stars


def _without_refusals(node: ast.stmt, module: Module) -> ast.stmt:
    """Leave out what refuses a spec or a case: one that exists has passed it, so it decides no verdict of it."""
    if isinstance(node, ast.ClassDef) and node.name in REFUSING and module.name.startswith("gradspec."):
        node.body = [part for part in node.body if getattr(part, "name", "") != "__post_init__"]
    return node


def _at_module_level(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a statement and those within it that run when the module is imported."""
    yield node
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return
    if isinstance(node, COMPREHENSIONS):  # its variables are its own; what `:=` binds in it is not
        yield from (part.target for part in ast.walk(node) if isinstance(part, ast.NamedExpr))
        return
    for child in ast.iter_child_nodes(node):
        yield from _at_module_level(child)


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id


def _has_effect(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr | ast.AugAssign | ast.Delete | ast.Raise | ast.Assert):
        return not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(isinstance(part, ast.Attribute | ast.Subscript) for target in targets for part in ast.walk(target))
    if isinstance(node, ast.If | ast.Try | ast.TryStar | ast.With | ast.For | ast.While | ast.Match):
        return any(_has_effect(child) for child in _statements(node))
    return False


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from _statements(child)


def _examples(node: ast.AST) -> Iterator[ast.AST]:
    for part in ast.walk(node):
        if (found := docstring_node(part)) is not None:
            try:
                examples = doctest.DocTestParser().get_examples(str(found.value))
            except ValueError:
                continue
            for example in examples:
                yield from statements_of(example.source)
