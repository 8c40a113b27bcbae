"""How the text of a spec imports and names what it is of: by an import path, or by a TODO where there is none."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Imported:
    """Something that a text imports."""

    #: Where it is; empty where nobody can import it.
    module: str
    #: Its name there, and the one that the text gives it: `Outer`, `scale as scale_`.
    what: str
    #: How the text names it: `Outer.inner`.
    name: str
    #: What is behind the import, as a comment.
    note: str = ""
    #: What its author has to write; empty where nothing is left to do.
    todo: str = ""


def imported(path: str, thing: Any, name: str, taken: Collection[str]) -> Imported:
    """Return how a text imports and names something.

    Args:
        path: as the command line takes it: `package.module:Outer.inner`, `ops.py:Name`; empty: that of its definition.
        thing: what it is.
        name: its name where no path has one, an identifier.
        taken: what the text calls otherwise: another name is chosen then.
    """
    where, _, found = (path or _path_of(thing)).rpartition(":")
    words = found or name
    top, dot, rest = words.partition(".")
    alias = top
    while alias in taken:
        alias += "_"
    file = Path(where)
    is_file = file.suffix == ".py"
    module = file.stem if is_file else where
    # What `gradspec check` finds where the spec is in the same folder.
    note = f"keep the spec beside {file.name}" if is_file else ""
    what = top if alias == top else f"{top} as {alias}"
    todo = "" if module else f"{'import' if getattr(thing, '__name__', '') == top else 'define'} {what}"
    if module and not all(map(_is_name, module.split("."))):
        todo = f"rename {file.name}, which is not the name of a module, and import {what} from it"
    return Imported(
        module="" if todo else module,
        what=what,
        name=f"{alias}{dot}{rest}",
        note="" if todo else note,
        todo=todo,
    )


def import_lines(things: Iterable[Imported]) -> list[str]:
    """Return the imports as lines, one for each module; a comment for what cannot be imported."""
    names: dict[str, list[str]] = {}
    notes: dict[str, str] = {}
    for one in things:
        line = f"# TODO: {one.todo}" if one.todo else f"from {one.module} import"
        names.setdefault(line, []).append("" if one.todo else f" {one.what}")
        notes[line] = notes.get(line) or (f"  # {one.note}" if one.note else "")
    return [f"{line}{','.join(dict.fromkeys(what))}{notes[line]}" for line, what in names.items()]


def operator_import(operator: str, path: str, modules: Iterable[str]) -> str:
    """Return the import of the module that registers an operator: the one that was named, or else its home.

    Args:
        operator: its name, `mylib::scale`.
        path: as the command line takes it: `ops.py:mylib::scale`, `mylib::scale`.
        modules: those of its spec.
    """
    module = path.rpartition("::")[0].rpartition(":")[0]
    if module.endswith(".py"):
        file = Path(module)
        if not _is_name(file.stem):
            return f"# TODO: rename {file.name}, which is not the name of a module, and import it for {operator}"
        return f"import {file.stem}  # registers {operator}; keep the spec beside {file.name}"
    homes = [name for name in modules if name.partition(".")[0] not in ("__main__", "torch")]
    homes = [name for name in homes if not name.startswith("gradspec._")]  # of what replaces the spec
    home = module or next(iter(homes), "")
    return f"import {home}  # registers {operator}" if home else f"# TODO: import what registers {operator}"


def constant_of(name: str) -> str:
    """Return the name of a spec in its module: `ROUND_STE` for `RoundSTE`, `LSQ_SPEC` for `LSQ`, which is taken."""
    words = stem_of(name).upper()
    return f"{words}_SPEC" if words in (name, "SPEC") else words


def stem_of(name: str) -> str:
    """Return the name of a function as that of a file: `round_ste` for `RoundSTE`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return re.sub(r"\W+", "_", words).strip("_").lower() or "spec"


def _path_of(thing: Any) -> str:
    """Return the import path of a definition; empty where it is local, or typed into an interpreter."""
    module = getattr(thing, "__module__", None)
    for name in (
        getattr(thing, "__qualname__", ""),
        getattr(thing, "__name__", ""),
    ):  # the second one, of a function in C
        found: Any = sys.modules.get(module or "")
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is thing and module != "__main__":
            return f"{module}:{name}"
    return ""


def name_of(thing: Any, otherwise: str) -> str:
    """Return the name of a definition, or another one where it has none: a lambda, a partial."""
    name = getattr(thing, "__name__", "")
    return name if _is_name(name) else otherwise


def _is_name(word: str) -> bool:
    return word.isidentifier() and not keyword.iskeyword(word)
