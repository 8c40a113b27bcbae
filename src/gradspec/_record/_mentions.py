"""What code mentions: the names, read off its syntax tree, and where syntax does not tell all."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gradspec._record._modules import Module, beside
from gradspec._record._normal_form import told

#: A name with the attributes that are asked of it: `("torch", "ops", "mylib")`.
Chain = tuple[str, ...]
#: What an import binds a name to: a module, and the name in it, or "" for the module itself.
Target = tuple[str, str]
#: Names by which code finds modules that no syntax tree shows.
FINDERS = frozenset({"exec", "eval", "iter_modules", "walk_packages", "entry_points"})
IMPORTERS = frozenset({"import_module", "__import__"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass
class Mentions:
    """The names that code mentions, the imports inside of it, and where syntax does not tell all."""

    chains: set[Chain] = field(default_factory=set)
    #: Imports within functions, by the local name.
    local: dict[str, set[Target]] = field(default_factory=dict)
    #: Names of which attributes are asked for by computed names: all of each may be meant.
    dynamic: set[str] = field(default_factory=set)
    #: What lies beside the module is looked for.
    reads_files: bool = False
    #: Modules are imported by names that are computed.
    finds_modules: bool = False
    #: The names of its own module are looked through: all of them may be meant.
    own_names: bool = False

    @classmethod
    def of(cls, nodes: Iterable[ast.AST], module: Module) -> Mentions:
        """Collect what syntax trees mention."""
        found = cls()
        for node in nodes:
            declared = (part for part in ast.walk(node) if isinstance(part, ast.Global | ast.Nonlocal))
            elsewhere = frozenset(name for part in declared for name in part.names)
            _Visitor(found, module, elsewhere).visit(node, frozenset())
        return found


@dataclass
class _Visitor:
    found: Mentions
    module: Module
    #: Names that some function in the tree declares to be variables of others.
    elsewhere: frozenset[str]

    def visit(self, node: ast.AST, hidden: frozenset[str]) -> None:
        """Note what a tree mentions; `hidden` are the names that mean variables of a function here."""
        if isinstance(node, ast.Attribute) and (chain := chain_of(node)):
            self._note(chain, hidden)
            return
        if isinstance(node, _FUNCTIONS):
            self._visit_function(node, hidden)
            return
        if isinstance(node, ast.Call):
            self._visit_call(node, hidden)
            return
        if isinstance(node, ast.Name):
            self._note((node.id,), hidden)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for name, target in imported(node, self.module):
                self.found.local.setdefault(name, set()).add(target)
        elif isinstance(node, ast.AnnAssign):
            self._visit_quoted(node.annotation, hidden)
        for child in ast.iter_child_nodes(node):
            self.visit(child, hidden)

    def _visit_function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, hidden: frozenset[str]
    ) -> None:
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
        around = [*arguments.defaults, *(default for default in arguments.kw_defaults if default is not None)]
        annotations = [one.annotation for one in every if one.annotation is not None]
        body: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else list(node.body)
        if not isinstance(node, ast.Lambda):
            around += node.decorator_list
            annotations += [node.returns] if node.returns is not None else []
        for annotation in annotations:
            self._visit_quoted(annotation, hidden)
        for expression in (*around, *annotations):
            self.visit(expression, hidden)
        own = {one.arg for one in every} | set(_variables(body))
        for part in body:
            self.visit(part, (hidden | own) - self.elsewhere)

    def _visit_call(self, call: ast.Call, hidden: frozenset[str]) -> None:
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        if name in ("getattr", "setattr", "hasattr") and len(call.args) > 1:
            owner, asked = chain_of(call.args[0]), call.args[1]
            if owner and isinstance(asked, ast.Constant):
                self._note((*owner, str(asked.value)), hidden)
            elif owner and owner[0] not in hidden:
                self.found.dynamic.add(owner[0])
        if name in IMPORTERS and call.args:
            first = call.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                self.found.local.setdefault(f"<{first.value}>", set()).add((first.value, ""))
                self.found.dynamic.add(f"<{first.value}>")
            else:
                self.found.finds_modules = True
        elif name in FINDERS and (isinstance(call.func, ast.Name) or name not in ("exec", "eval")):
            self.found.finds_modules = True  # but not `module.eval()`
        elif name == "globals" and isinstance(call.func, ast.Name):
            self.found.own_names = True
        self.visit(call.func, hidden)
        for child in (*call.args, *told(call)):
            self.visit(child, hidden)

    def _visit_quoted(self, annotation: ast.expr, hidden: frozenset[str]) -> None:
        for node in ast.walk(annotation):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for parsed in statements_of(node.value):
                    self.visit(parsed, hidden)

    def _note(self, chain: Chain, hidden: frozenset[str]) -> None:
        if chain == ("__file__",):
            self.found.reads_files = True
        if chain[0] not in hidden:
            self.found.chains.add(chain)


def imported(node: ast.Import | ast.ImportFrom, module: Module) -> Iterator[tuple[str, Target]]:
    """Yield the names that an import binds, with what each is bound to."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname:
                yield alias.asname, (_found_from(module, alias.name), "")
            else:
                top = alias.name.partition(".")[0]
                yield top, (_found_from(module, top), "")
                if "." in alias.name:  # the submodule is imported too, though another name is bound
                    yield f"<{alias.name}>", (_found_from(module, alias.name), "")
        return
    base = _found_from(module, node.module or "", node.level)
    for alias in node.names:
        yield alias.asname or alias.name, (base, "" if alias.name == "*" else alias.name)


def _found_from(module: Module, dotted: str, level: int = 0) -> str:
    """Return the module that an import in another one means: an import path, or a file that lies beside a script."""
    if module.name.endswith(".py"):
        folder = module.file.parent
        for _ in range(level - 1):
            folder = folder.parent
        return beside(folder, dotted or "__init__") or dotted
    if not level:
        return dotted
    parents = module.package.split(".")
    return ".".join(filter(None, [*parents[: len(parents) - level + 1], dotted]))


def chain_of(node: ast.AST) -> Chain:
    """Return `a.b.c` as its names; empty for anything that does not begin with a name."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        owner = chain_of(node.value)
        return (*owner, node.attr) if owner else ()
    return ()


def statements_of(source: str) -> list[ast.stmt]:
    """Return what a text says as Python; nothing where it is none."""
    try:
        return ast.parse(source).body
    except (SyntaxError, ValueError):
        return []


def _variables(body: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names that a function assigns: they hide what the module calls so."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif not isinstance(node, (ast.Lambda, *COMPREHENSIONS)):
            yield from _variables(ast.iter_child_nodes(node))
