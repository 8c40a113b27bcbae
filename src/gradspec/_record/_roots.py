"""What an object is called in a record: its root, `module:NAME`, or the modules or files that made it."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path

from gradspec._record._modules import ENVIRONMENT, Modules


def root_of(thing: object, modules: Collection[str], path: str = "") -> tuple[str, ...]:
    """Return the roots of an object: where it is assigned, or else the whole modules that made it.

    Args:
        thing: a spec, a law.
        modules: the import paths of the modules in which it may be; those that it was made of.
        path: where it is, as the command line takes it, if that is known.
    """
    where, _, name = path.rpartition(":")
    if where.endswith(".py"):
        return (
            (f"{shown_path(Path(where))}:{name}",)
            if name and _has(_loaded(Path(where)), name, thing)
            else (shown_path(Path(where)),)
        )
    if name and _has(sys.modules.get(where), name, thing):
        return (f"{where}:{name}",)
    homes = [home for home in dict.fromkeys([*([where] if where else []), *modules]) if _root_of_module(home)]
    # A spec may be assigned elsewhere than where what it is made of is defined. The longest name: others pass it on.
    for module in [*homes, *sorted(sys.modules, key=lambda name: (-name.count("."), name))]:
        for name, value in list(vars(sys.modules.get(module, object)).items()):
            if value is thing and (root := _root_of_module(module)):
                return (f"{root}:{name}",)
    # What was made by a loop or a function, say, depends on the modules that made it; no file has what was typed.
    typed = "__main__" in modules and getattr(sys.modules.get("__main__"), "__file__", None) is None
    return () if typed else tuple(map(_root_of_module, homes))


def home_of(thing: object) -> str:
    """Return where a class or function is defined, as a root; "" if none can be named.

    What stands in a function, as a lambda does, has no name by which it is found again.
    """
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", "")
    if not isinstance(module, str) or not name or "<" in name:
        return ""
    home = _root_of_module(module)
    return f"{home}:{name}" if home and not Path(home).is_absolute() else ""


def _root_of_module(name: str) -> str:
    """Return the name by which a module is found again; of one outside of packages, its file; "" if it has none."""
    module, top = sys.modules.get(name), name.partition(".")[0]
    file = getattr(module, "__file__", None)
    # A spec of `torch.nn.Linear` does not depend on torch's source, but on its version.
    if file is None or not file.endswith(".py") or top in ENVIRONMENT or top in sys.stdlib_module_names:
        return ""
    found = Modules(ours=frozenset({name.partition(".")[0]})).find(name)
    if "." in name and found is not None and found.file == Path(file).resolve():
        return name
    return shown_path(Path(file))


def _has(module: object, name: str, thing: object) -> bool:
    return module is not None and getattr(module, name, None) is thing


def _loaded(file: Path) -> object:
    path = str(file.resolve())
    return next((m for m in list(sys.modules.values()) if getattr(m, "__file__", None) == path), None)


def shown_path(file: Path) -> str:
    """Return a path as a record holds it: from the working directory, where it lies below it."""
    file, here = file.resolve(), Path.cwd()
    return file.relative_to(here).as_posix() if file.is_relative_to(here) else file.as_posix()
