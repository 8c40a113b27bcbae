"""Import what a command line names: a module, a file, or something in one of them; errors are one line."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import pkgutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gradspec._ending import EndedError, endings_raise
from gradspec._one_line import one_line

if TYPE_CHECKING:
    from types import ModuleType


#: In place of an attribute that is not there.
MISSING: Final = object()


class TargetError(ValueError):
    """A target that gives no specs; the message is one line for the user."""


def split(target: str) -> tuple[str, str]:
    """Return the module or file of a target and the name in it: "package.module:NAME", "specs.py:NAME".

    Of an operator the module that registers it may be left out: "mylib::scale", "my_ops.py:mylib::scale".
    """
    if "::" in target:  # an operator
        where, _, namespace = target.rpartition("::")[0].rpartition(":")
        return where, f"{namespace}::{target.rpartition('::')[2]}"
    # From the right: the path of a file may hold a colon.
    where, _, name = target.partition(":") if ".py:" not in target else target.rpartition(":")
    return where, name


def load(where: str) -> ModuleType:
    """Return a module by its import path, or by its file if it ends in .py.

    Raises:
        TargetError: there is none, or importing it raised.
    """
    with endings_raise():
        return _load_file(where) if where.endswith(".py") else _load_module(where)


def load_attribute(target: str) -> Any:
    """Return what "package.module:Name" names; Name may be dotted.

    Raises:
        TargetError: no such module or file, no such name in it, or no name at all.
    """
    where, name = split(target)
    if "::" in name:
        return _operator(where, name)
    if not name:
        load(where)  # which may say that the last part is a name in a module
        raise TargetError(f"{target!r} names a module: write {target}:NAME for something in it")
    found: Any = load(where)
    for part in name.split("."):
        owner, found = found, member(found, part, where)
        if found is MISSING:
            close = difflib.get_close_matches(part, dir(owner), n=1)
            raise TargetError(f"{where!r} has no {name!r}{f': did you mean {close[0]!r}?' if close else ''}")
    return found


def _operator(where: str, name: str) -> Any:
    """Return the overload of a registered operator, after importing the module that registers it.

    Without one, that is the module of the name of the namespace, if there is one.
    """
    from gradspec.spec._schema import overload_of

    if not where and ".py" in (file := name.partition("::")[0]):
        raise TargetError(f"no operator {name!r}: write {file}:{name.partition('::')[2]} for a name in a file")
    load_namespace(where, name)
    try:
        return overload_of(name)
    except ValueError as error:
        hint = "" if where else f": name the module too, as my_ops.py:{name}"
        raise TargetError(str(error).partition(": import")[0] + hint) from None


def load_namespace(where: str, name: str) -> None:
    """Import the module that registers an operator; where none is named, the one called as its namespace, if any."""
    namespace = name.partition("::")[0]
    with_cwd()
    if where or importlib.util.find_spec(namespace):
        load(where or namespace)


def member(owner: Any, name: str, where: str) -> Any:
    """Return an attribute of what was imported from `where`, or `MISSING`.

    Raises:
        TargetError: asking for it raised, in a `__getattr__` of its own.
    """
    try:
        with endings_raise():
            return getattr(owner, name, MISSING)
    except (Exception, SystemExit) as error:
        raise TargetError(f"asking {where!r} for {name!r} raised {one_line(error)}: fix it") from None


def _load_module(where: str) -> ModuleType:
    if not all(part.isidentifier() for part in where.split(".")):
        raise TargetError(f"{where!r} is not an import path: write package.module, package.module:NAME, or a .py file")
    with_cwd()
    try:
        return importlib.import_module(where)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{where}.".startswith(f"{error.name}."):
            raise _raised(where, error) from None
        raise TargetError(f"no module {error.name!r}: {_remedy(where, error.name)}") from None
    except KeyboardInterrupt:
        raise  # the user's
    except BaseException as error:  # a test framework skips by one that is not an Exception
        raise _raised(where, error) from None


def with_cwd() -> None:
    """Find modules in the working directory, as `python -m` does: a project can be checked from its root."""
    cwd = str(Path.cwd())
    if cwd not in sys.path:
        sys.path.insert(0, cwd)
    importlib.invalidate_caches()


def _remedy(where: str, missing: str) -> str:
    parent, _, last = missing.rpartition(".")
    home = sys.modules.get(parent)
    if home is not None and where == missing and hasattr(home, last):
        return f"write {parent}:{last} for a name in a module"
    siblings = pkgutil.iter_modules(getattr(home, "__path__", ()) if parent else None)
    # Only by the last word: a long common parent would make everything look close.
    close = difflib.get_close_matches(last, [module.name for module in siblings], n=1, cutoff=0.75)
    written = ".".join(filter(None, [parent, *close]))
    return f"did you mean {written!r}?" if close else "install it, or run from the folder that holds it"


def _load_file(where: str) -> ModuleType:
    file = Path(where).resolve()
    if not file.is_file():
        raise TargetError(f"no file {where!r}: give the path of a Python file, or an import path")
    name = file.stem
    while name in sys.modules:
        if getattr(sys.modules[name], "__file__", None) == str(file):
            return sys.modules[name]
        name += "_"
    found = importlib.util.spec_from_file_location(name, file)
    assert found is not None  # the name ends in .py
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    with_cwd()  # behind what comes next: a spec may stand in another folder than what it is of
    if str(file.parent) not in sys.path:  # as `python file.py` does
        sys.path.insert(0, str(file.parent))
    sys.modules[name] = module
    try:
        found.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, KeyboardInterrupt):
            raise  # the user's
        raise _raised(where, error) from None
    return module


def _raised(where: str, error: BaseException) -> TargetError:
    if isinstance(error, EndedError):
        return TargetError(f"importing {where!r} ended the interpreter: {error}: fix it")
    if where.endswith(".py") and "attempted relative import" in str(error):
        file = Path(where).resolve()
        homes = [home for home in file.parents if (home / "__init__.py").exists()]
        parts = [home.name for home in reversed(homes)] or [part for part in Path(where).parent.parts if part != ".."]
        module = ".".join((*parts, file.stem))
        return TargetError(f"{where!r} imports from its own package: name it as a module of that, as {module}:NAME")
    run = where if where.endswith(".py") else f'-c "import {where}"'
    return TargetError(f"importing {where!r} raised {one_line(error)}: fix it, `python {run}` shows the traceback")
