"""The directive `gradspec-fields`: the fields of dataclasses, each with the first sentence of its `#:` comment."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from sphinx.errors import PycodeError
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

from gradspec.sphinx_ext._warnings import GradspecWarning, warn_each_build
from gradspec.sphinx_ext.page._nodes import Cell, table


class FieldsDirective(SphinxDirective):
    """Render a row for each field; the arguments are classes, each as `module:Class`. Their code is read, not run."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the table; a class that is not found is a warning."""
        rows: list[list[Cell]] = []
        for name in self.arguments[0].split():
            try:
                rows += [[nodes.literal("", name.rpartition(":")[2])], *self._rows(*name.split(":"))]
            except (ValueError, TypeError, ImportError, PycodeError, LookupError) as error:
                warn_each_build(self, GradspecWarning.IMPORT, f"{name}: {error}: name a class as module:Class")
        return [table(["Field", "What it says"], rows, "gradspec-fields")] if rows else []

    def _rows(self, module: str, name: str) -> Iterator[list[Cell]]:
        module, name = _home(module, name)
        origin = _origin(module)
        self.env.note_dependency(Path(origin))
        documented = ModuleAnalyzer.for_file(origin, module).find_attr_docs()
        fields = {field: doc for (owner, field), doc in documented.items() if owner == name}
        if not fields:
            raise LookupError("there is no such class, or it documents no field")
        for field, doc in fields.items():
            yield [nodes.literal("", field), first_sentence(" ".join(doc))]


def _origin(module: str) -> str:
    """Return the file of a module, and run no package on the way to it."""
    first, *rest = module.split(".")
    found = find_spec(first)
    file = None if found is None or found.origin is None else Path(found.origin)
    for part in rest:
        beside = () if file is None else (file.parent / f"{part}.py", file.parent / part / "__init__.py")
        file = next((path for path in beside if path.exists()), None)
    if file is None:
        raise LookupError(f"there is no module {module}")
    return str(file)


def _home(module: str, name: str) -> tuple[str, str]:
    """Return where a class is written that a module may import only, as a package does for its users."""
    tree = ast.parse(Path(_origin(module)).read_bytes())
    if any(isinstance(node, ast.ClassDef) and node.name == name for node in tree.body):
        return module, name
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)):
        for one in node.names:
            if (one.asname or one.name) == name:
                inside = Path(_origin(module)).name == "__init__.py"
                parts = module.split(".")[: len(module.split(".")) - node.level + inside] if node.level else []
                return _home(".".join((*parts, *filter(None, [node.module]))), one.name)
    return module, name


def first_sentence(text: str) -> str:
    """Return a text up to the first full stop, colon or semicolon that ends a sentence or a clause."""
    ends = [at for mark in (". ", ": ", "; ") if (at := text.find(mark)) > 0]
    return f"{text[: min(ends)]}." if ends else text.strip()
