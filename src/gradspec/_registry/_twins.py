"""Two specs of one name: a record tells specs apart only by their names, and the second would replace the first."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradspec._record import file_of
from gradspec._registry._registry import _by_name
from gradspec._registry._targets import MISSING, TargetError, split
from gradspec.spec import Spec

if TYPE_CHECKING:
    from types import ModuleType

    from gradspec.report import Report


def refuse_twins(things: Iterable[tuple[str, str, Any]], reports: Iterable[Report], *, record: Path | str) -> None:
    """Refuse to replace the verdicts of another spec that has the name of one of these.

    A spec is the same after an edit, after its variable is renamed, and in another file once its old one is gone or no
    longer defines it. A record without paths, or with paths that lead nowhere here, is not judged.

    Args:
        things: what will be measured: name, path, and the spec or the function of an audit.
        reports: what the record holds.
        record: its path, for the message.

    Raises:
        TargetError: the record holds another spec of a name.
    """
    reports = tuple(reports)
    for name, path, thing in things:
        there = {str(report.sheets[name].get("path", "")) for report in reports if name in report.sheets}
        for was in sorted(there):
            if _is_another(was, path, name, thing):
                raise TargetError(
                    f"two specs are called {name!r} ({was}, which {record} holds, and {path}): rename the second, or "
                    "give another --record"
                )


def _is_another(was: str, path: str, name: str, thing: Any) -> bool:
    """Return whether a path of a record still leads to something of a name, and that is not the thing at `path`."""
    (where, old), (home, new) = split(was), split(path)
    there, here = (file_of(place) if place else None for place in (where, home))
    if there is None or here is None:
        return False
    there, here = there.resolve(), here.resolve()
    if (there, old) == (here, new):
        return False
    if found := [_held(module, old) for module in _loaded_from(there)]:
        return all(value is not thing and _has_name(value, name) for value in found)
    return _defines(there, old)


def _loaded_from(file: Path) -> Iterator[ModuleType]:
    for module in tuple(sys.modules.values()):
        origin = getattr(module, "__file__", None)
        if isinstance(origin, str) and Path(origin).name == file.name and Path(origin).resolve() == file:
            yield module


def _held(module: ModuleType, name: str) -> Any:
    """Return what a module has under a name: a variable, or a spec of that name."""
    return vars(module).get(name, _by_name(module).get(name, MISSING))


def _has_name(value: Any, name: str) -> bool:
    return value is not MISSING and (not isinstance(value, Spec) or value.name == name)


def _defines(file: Path, name: str) -> bool:
    """Return whether a file that is not imported gives something a name; what it imports from elsewhere does not count.

    A spec in a tuple and an operator have their names in quotes.
    """
    try:
        nodes = list(ast.walk(ast.parse(file.read_bytes())))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    imports = {alias.asname or alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    stored |= {node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    quoted = {node.value for node in nodes if isinstance(node, ast.Constant)} if "*" not in imports else set()
    last = name if "::" in name else name.rpartition(".")[2]
    return last in stored or (last in quoted and last not in imports)
