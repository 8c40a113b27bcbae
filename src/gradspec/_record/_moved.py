"""Where a root may be now that is not where a record says: its file or its module has another name, or another room.

The key of a source hashes definitions and no paths, so it tells which of these places is the right one, if any is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, product
from pathlib import Path

from gradspec._record._modules import UNREADABLE, Module, split_root
from gradspec._record._program import Program
from gradspec._record._resolving import Resolver

#: How many places are tried at most, all roots of a source taken together.
_TRIED = 64


def moved(resolver: Resolver, roots: Iterable[str]) -> Iterator[Mapping[str, str]]:
    """Yield what roots may be called now, by the names that they had; nothing where all are where they were.

    Args:
        resolver: of the modules as they are.
        roots: as `Reach` takes them.
    """
    lost = [root for root in dict.fromkeys(roots) if not _is_there(resolver, root)]
    if lost:
        places = (list(_elsewhere(resolver.program, root)) for root in lost)
        yield from (dict(zip(lost, found, strict=True)) for found in islice(product(*places), _TRIED))


def _is_there(resolver: Resolver, root: str) -> bool:
    try:
        return bool(resolver.root(root))
    except UNREADABLE:
        return False


def _elsewhere(program: Program, root: str) -> Iterator[str]:
    """Yield the roots of the same name in all modules of the same package, or in all files of the same folder.

    A module as a whole has another name, or another place, but not both.
    """
    where, name = split_root(root)
    for module in _neighbours(program, where):
        if name and _defines(program, module, name):
            yield f"{module.name}:{name}"
        elif not name and not {*_parts(module.name)}.isdisjoint(_parts(where)):
            yield module.name


def _neighbours(program: Program, where: str) -> Iterator[Module]:
    if not where.endswith(".py"):
        package = program.modules.find(where.partition(".")[0])
        if package is not None:
            yield from program.siblings(package.name, package)
    elif not Path(where).is_absolute() and "/" in where:
        for base in dict.fromkeys((Path.cwd(), *program.modules.folders)):
            for file in sorted((base / Path(where).parts[0]).rglob("*.py")):
                if (module := program.modules.find(file.relative_to(base).as_posix())) is not None:
                    yield module


def _defines(program: Program, module: Module, name: str) -> bool:
    """Whether a module itself defines a name; a look at the text spares most of them the reading."""
    try:
        return name in module.file.read_text(encoding="utf-8") and name in program.load(module).by_name
    except UNREADABLE:
        return False


def _parts(where: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return where a module is, and what it is called there."""
    place, _, name = where.rpartition("/" if where.endswith(".py") else ".")
    return ("in", place), ("called", name)
