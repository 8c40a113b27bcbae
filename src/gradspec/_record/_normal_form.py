"""The normal form of a definition: what comments, layout, paths and the names of modules do not move."""

from __future__ import annotations

import ast
import hashlib

#: What a spec and a law say to a reader, by the class that is called: no check reads these fields.
PROSE = {
    "Law": frozenset({"family", "statement", "doc", "specimens"}),
    **dict.fromkeys(
        ("FunctionSpec", "ModuleSpec", "OperatorSpec", "TextSpec"),
        frozenset({"summary", "arguments", "inputs", "returns", "references", "differences", "version"}),
    ),
}
#: Fields of syntax trees that say nothing, or differ from one Python to the next.
_MUTE = frozenset({"ctx", "kind", "type_comment", "type_params"})


def normal_form(node: ast.AST, *, docstrings: bool = False) -> str:
    """Return a syntax tree as text: the same for every Python from 3.11 on.

    Args:
        node: a statement.
        docstrings: keep the docstrings; otherwise they count for nothing.
    """
    return _text(node, docstrings)


def _text(node: object, docstrings: bool) -> str:
    if isinstance(node, list):
        return "[" + ",".join([_text(item, docstrings) for item in node]) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.ImportFrom):
        # What is imported is hashed where it is defined; where in its package that is does not matter.
        top = "" if node.level else (node.module or "").partition(".")[0]
        return f"From({top}," + ",".join(f"{a.name}:{a.asname or a.name}" for a in node.names) + ")"
    parts = []
    for name, value in ast.iter_fields(node):
        if value is None or value == [] or name in _MUTE:
            continue
        if name == "body" and not docstrings and isinstance(value, list) and docstring_node(node) is not None:
            value = value[1:]
        if name == "keywords" and isinstance(node, ast.Call):
            value = told(node)
        parts.append(f"{name}={_text(value, docstrings)}")
    return f"{type(node).__name__}({','.join(parts)})"


def told(call: ast.Call) -> list[ast.keyword]:
    """Return the keyword arguments of a call but for the prose of a spec or a law."""
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    return [keyword for keyword in call.keywords if keyword.arg not in PROSE.get(name, ())]


def docstring_node(node: ast.AST) -> ast.Constant | None:
    """Return the docstring of a module, class or function."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or not node.body:
        return None
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return first.value
    return None


def short(text: str) -> str:
    """Return the hash of a text, in 16 digits."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]
