"""The single edits that can be made in a file of Python: each changes what its program does, or seems to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class RandomEdit:
    """One edit of a file.

    Attributes:
        what: which kind of edit, "a comparison".
        line: where, counted from 1.
        place: the name of the definition at the top of the file that holds it, or how its statement begins.
        start: where it begins, in bytes of the file.
        end: where it ends.
        new: what stands there instead.
    """

    what: str
    line: int
    place: str
    start: int
    end: int
    new: str

    def applied(self, text: str) -> str:
        """Return the text of the file with the edit."""
        data = text.encode()
        return (data[: self.start] + self.new.encode() + data[self.end :]).decode()


def edits_in(text: str) -> list[RandomEdit]:
    """Return every edit of a file, imports left out."""
    file = _File(text)
    found = []
    for top in ast.parse(text).body:
        if isinstance(top, ast.Import | ast.ImportFrom):
            continue
        place = getattr(top, "name", "") or ast.unparse(top)[:40]
        for node, what, new in file.edits(top):
            start, end = file.span(node)
            if file.data[start:end] != new.encode():
                found.append(RandomEdit(what, node.lineno, place, start, end, new))
    return found


class _File:
    """The bytes of a file, and where its lines begin."""

    def __init__(self, text: str) -> None:
        self.data, self.begins = text.encode(), [0]
        for line in self.data.splitlines(keepends=True):
            self.begins.append(self.begins[-1] + len(line))

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Return where a part of the file begins and ends, in bytes."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.begins[node.lineno - 1] + node.col_offset, self.begins[node.end_lineno - 1] + node.end_col_offset

    def source(self, node: ast.expr) -> str:
        """Return how a part of the file is written."""
        start, end = self.span(node)
        return self.data[start:end].decode()

    def edits(self, node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
        """Yield each part of a statement that can be edited, which edit it is, and what stands there then."""
        match node:
            case ast.Constant(value=bool()):
                yield node, "a truth value", str(not node.value)
            case ast.Constant(value=int() | float()):
                yield node, "a number", f"({node.value!r} + 1)"
            case ast.Expr(value=ast.Constant(value=str(said))):
                yield node, "a docstring", repr(said.replace("2", "3") if ">>>" in said and "2" in said else f"{said}~")
                return
            case ast.Constant(value=str(said)) if said:
                yield node, "a text", repr(f"{said}~")
            case ast.Compare():
                yield node, "a comparison", f"(not ({self.source(node)}))"
            case ast.BinOp():
                sign = "-" if isinstance(node.op, ast.Add) else "+"
                yield node, "an operator", f"(({self.source(node.left)}) {sign} ({self.source(node.right)}))"
            case ast.BoolOp():
                word = " or " if isinstance(node.op, ast.And) else " and "
                yield node, "a connective", f"({word.join(f'({self.source(value)})' for value in node.values)})"
            case ast.Return(value=ast.expr()):
                yield node, "a return", "return None"
            case ast.If() | ast.IfExp() | ast.While():
                yield node.test, "a condition", f"(not ({self.source(node.test)}))"
            case ast.Expr(value=value) if not isinstance(value, ast.Constant):
                yield node, "a statement", "pass"
            case ast.AnnAssign():
                yield node.annotation, "an annotation", "object"
            case ast.JoinedStr():
                return  # Python 3.11 does not say where the parts of an f-string stand
        said = ("annotation", "returns")
        for name, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    found = self.edits(child)
                    yield from ((at, "an annotation", new) for at, _, new in found) if name in said else found
