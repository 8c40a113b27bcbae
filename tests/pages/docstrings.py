"""The docstrings that people read: those of public modules and objects, and of laws, whose pages are made of them."""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gradspec.functions._papers import PAPERS
from pages.numbers import ROOT, blank, numbers

SOURCES = ROOT / "src"
#: What is not prose: literal blocks and mathematics, code and links, addresses.
NOT_PROSE = (
    r"^( *)(?:\.\. math::|(?!\.\. )[^\n]*::$)[^\n]*\n(?: *\n|\1 +[^\n]*(?:\n|\Z))+",
    r"(`+)[^`]+?\1",
    r"https?://\S+",
)


@dataclass(frozen=True)
class Docstring:
    """A docstring as its file has it, and where."""

    #: "gradspec.nn._shake._block:ShakeBlock.forward", or without a colon, of a module.
    name: str
    file: str
    line: int
    text: str

    def numbers(self) -> Iterator[tuple[int, str]]:
        """Yield line in the file and text of each number in the prose."""
        text = without_years(without_examples(self.text))
        yield from ((self.line + line - 1, number) for line, number in numbers(text, NOT_PROSE))


def docstrings() -> Iterator[Docstring]:
    """Yield every docstring that people read."""
    for path in sorted(SOURCES.glob("gradspec/**/*.py")):
        parts = path.relative_to(SOURCES).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        yield from docstrings_of(path.read_text(encoding="utf-8"), module, path.relative_to(ROOT).as_posix())


def docstrings_of(source: str, module: str, file: str) -> Iterator[Docstring]:
    """Yield the docstrings of a module that people read."""
    tree, lines = ast.parse(source), source.splitlines(keepends=True)
    is_law = re.search(r"\bdoc=__doc__", source)
    described = [(module, tree)] if is_law or not re.search(r"\._", module) else []
    for name, node in [*described, *_public(tree, f"{module}:")]:
        if ast.get_docstring(node):
            place = node.body[0]
            text = "".join(lines[place.lineno - 1 : place.end_lineno]).replace('"""', "   ")
            yield Docstring(name, file, place.lineno, text)


def _public(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield name and node of the classes and functions of a module or class that have no leading underscore."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if not child.name.startswith("_") or child.name == "__call__":
                yield prefix + child.name, child
                if isinstance(child, ast.ClassDef):
                    yield from _public(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.stmt):
            yield from _public(child, prefix)


def without_examples(text: str) -> str:
    """Blank what `nox -s doctests` runs and compares."""
    lines = text.splitlines(keepends=True)
    for example in doctest.DocTestParser().get_examples(text):
        end = example.lineno + (example.source + example.want).count("\n")
        lines[example.lineno : end] = map(blank, lines[example.lineno : end])
    return "".join(lines)


def without_years(text: str) -> str:
    """Blank the years of the papers whose numbers stand in the same paragraph: tests/functions/test_papers.py."""
    parts = re.split(r"(\n\s*\n)", text)
    for at, part in enumerate(parts):
        if years := {str(paper.year) for paper in PAPERS if paper.number in part}:
            parts[at] = re.sub(rf"\b(?:{'|'.join(sorted(years))})\b", lambda year: blank(year[0]), part)
    return "".join(parts)
