"""Which source a measurement was made of: a hash that comments, docstrings and layout do not move.

The hash is taken over syntax trees, written out in a form that is the same for every Python from 3.11 on, of a
module and all that it imports from its own package. It is computed from files: nothing is imported, so that a
documentation build can compare a record with today's source without torch.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path


def import_closure(module: str) -> tuple[str, ...]:
    """Return the files, relative to the folder of its top-level package, that `module` imports from that package.

    A module that is not in a package (a script, a test file) is its own closure, as an absolute path.
    """
    top = module.partition(".")[0]
    root = package_root(top)
    if root is None:
        file = getattr(sys.modules.get(module), "__file__", None)
        return (str(file),) if file else ()
    found: dict[str, None] = {}
    queue = [module]
    while queue:
        name = queue.pop()
        file = _file_of(root, name)
        if file is None or (relative := file.relative_to(root).as_posix()) in found:
            continue
        found[relative] = None
        queue.extend(_imports(root, file, name, top))
    return tuple(sorted(found))


def fingerprint(files: Iterable[str], root: Path | None) -> str:
    """Return the hash of the syntax trees of `files`, which are relative to `root`; a missing file counts as empty."""
    digest = hashlib.sha256()
    for name in sorted(files):
        path = root / name if root is not None else Path(name)
        digest.update(Path(name).name.encode() if root is None else name.encode())
        digest.update((_tree(path) if path.is_file() else "missing").encode())
    return digest.hexdigest()[:16]


def package_root(top: str) -> Path | None:
    """Return the folder of a top-level package, or None if it is none that is installed."""
    try:
        found = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    locations = list(found.submodule_search_locations or ()) if found else []
    return Path(locations[0]) if locations else None


def _file_of(root: Path, name: str) -> Path | None:
    base = root.joinpath(*name.split(".")[1:])
    return next((p for p in (base.with_suffix(".py"), base / "__init__.py") if base != root and p.is_file()), None)


def _imports(root: Path, file: Path, name: str, top: str) -> Iterable[str]:
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(_parse(file)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith(f"{top}."))
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join(filter(None, [*package.split(".")[: len(package.split(".")) - node.level + 1], base]))
            if base == top or base.startswith(f"{top}."):
                for alias in node.names:
                    # `from package import module` stands on the module, not on all that the package re-exports.
                    module = f"{base}.{alias.name}"
                    yield module if _file_of(root, module) else base


@cache
def _parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def _tree(file: Path) -> str:
    return _dump(_parse(file))


def _dump(node: object) -> str:
    # Not `ast.dump`: which empty fields it writes differs from one Python to the next.
    if isinstance(node, list):
        return "[" + ",".join(map(_dump, node)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    parts = []
    for name, value in ast.iter_fields(node):
        if name == "body" and isinstance(value, list) and _is_docstring(node, value):
            value = value[1:]
        if value not in (None, []) and name not in ("ctx", "kind", "type_comment"):
            parts.append(f"{name}={_dump(value)}")
    return f"{type(node).__name__}({','.join(parts)})"


def _is_docstring(node: ast.AST, body: list[ast.stmt]) -> bool:
    documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    first = body[0] if body else None
    return (
        documented
        and isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
