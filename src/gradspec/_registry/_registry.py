"""From words on a command line to specs and laws: import paths, files, entry points, names."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from gradspec._registry._declared import Declared, declared_specs
from gradspec._registry._laws import did_you_mean, in_words
from gradspec._registry._targets import MISSING, TargetError, load, member, split
from gradspec.law import Law
from gradspec.profile import Profile, ProfileError
from gradspec.spec import Spec
from gradspec.spec._kinds import KINDS, kinds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import ModuleType

    from gradspec._engine._plan import Check


def resolve(target: str) -> list[tuple[str, Spec]]:
    """Return the specs that a target names, each with the path that names only it.

    Args:
        target: a module (`gradspec.functions`: its `FUNCTIONS`, as each kind has such a tuple, or every spec in it),
            a name in one
            (`gradspec.functions:GRAD_FACTOR`, a spec or a tuple of them, or the name of a spec), or a file in
            place of the module (`specs.py`, `specs.py:MY_SPEC`).

    Raises:
        TargetError: no such module, file or name, an import that raised, or something that is not a spec.
    """
    where, name = split(target)
    module = load(where)
    found = _named(module, where, name) if name else _listed(module, where)
    _refuse_twins([(target, spec) for spec in found])
    return [(_path(module, where, name, spec), spec) for spec in found]


def resolve_all(targets: Iterable[str]) -> list[tuple[str, Spec]]:
    """Return the specs of several targets, each spec once.

    Raises:
        TargetError: see `resolve`; or two different specs of one name, which a report could not tell apart.
    """
    found = {id(spec): (path, spec) for target in reversed(list(targets)) for path, spec in reversed(resolve(target))}
    pairs = list(reversed(found.values()))
    _refuse_twins(pairs)
    return pairs


def installed_specs() -> list[tuple[str, Spec]]:
    """Return our specs and those that installed packages announce as entry points `gradspec.specs`."""
    ours = [kind.home for kind in kinds() if kind.home]
    return resolve_all([*ours, *(entry.value for entry in entry_points(group="gradspec.specs"))])


def listed_specs() -> list[tuple[str, Spec | Declared]]:
    """Return what a list shows of the installed specs; ours are not imported for that."""
    ours = [pair for kind in KINDS for pair in declared_specs(kind)]
    homes = [kind.home for kind in kinds() if kind.home and kind not in KINDS]
    theirs = resolve_all([*homes, *(entry.value for entry in entry_points(group="gradspec.specs"))])
    pairs: list[tuple[str, Spec | Declared]] = [*ours, *theirs]
    _refuse_twins(pairs)
    return pairs


def select_checks(
    pairs: Sequence[tuple[str, Spec]], chosen: Sequence[Law], profile: Profile, *, seed: int = 0
) -> list[Check]:
    """Return what a run of these specs and laws would check.

    Raises:
        ProfileError: the profile names a device that is not there.
        TargetError: two cases of one name, or a spec without cases: its empty column would read as "all holds".
    """
    from gradspec._engine._plan import plan

    try:
        checks = plan([s for _, s in pairs], chosen, profile, seed=seed, paths={s.name: path for path, s in pairs})
    except ProfileError:
        raise
    except ValueError as error:
        raise TargetError(str(error)) from None
    given = {spec.kind for _, spec in pairs}
    if judging := [law for law in chosen if any(map(law.judges, given))]:
        if not checks:
            raise TargetError(f"nothing to check: no spec has {' or '.join(sorted({law.over for law in judging}))}")
    else:
        theirs = " or ".join(dict.fromkeys(kind for law in chosen for kind in law.kinds))
        raise TargetError(f"nothing to check: these laws judge a {theirs}, and each spec is of a {' or '.join(given)}")
    return checks


def _listed(module: ModuleType, where: str) -> list[Spec]:
    """Return the specs that a module gives when it is asked for as a whole."""
    asked = {kind.listed: member(module, kind.listed, where) for kind in kinds()}
    if listed := {name: value for name, value in asked.items() if value is not MISSING}:
        return [spec for name, value in listed.items() for spec in _checked(value, f"{where}:{name}")]
    held = [spec for value in vars(module).values() if _is_specs(value) for spec in _checked(value, where)]
    found = list({id(spec): spec for spec in held}.values())
    if not found:
        raise TargetError(f"{where!r} holds no spec: name a module that does, or add one (`gradspec list`)")
    return found


def _named(module: ModuleType, where: str, name: str) -> list[Spec]:
    value = member(module, name, where)
    if value is not MISSING:
        return _checked(value, f"{where}:{name}")
    specs = _by_name(module)
    if name in specs:
        return [specs[name]]
    visible = [*specs, *(key for key, value in vars(module).items() if _is_specs(value))]
    close = did_you_mean(name, visible)
    has = f"its specs are {', '.join(map(repr, visible))}" if visible else "it holds no spec"
    raise TargetError(f"{where!r} has no {name!r}: {close or has}")


def _checked(value: Any, shown: str) -> list[Spec]:
    if not _is_specs(value):
        raise TargetError(f"{shown!r} is {in_words(value)}: name a spec, or a tuple of them")
    return [value] if isinstance(value, Spec) else list(value)


def _is_specs(value: Any) -> bool:
    many = isinstance(value, list | tuple) and len(value) > 0
    return isinstance(value, Spec) or (many and all(isinstance(item, Spec) for item in value))


def _by_name(module: ModuleType) -> dict[str, Spec]:
    values = [value for value in vars(module).values() if _is_specs(value)]
    return {spec.name: spec for value in values for spec in ([value] if isinstance(value, Spec) else value)}


def _path(module: ModuleType, where: str, name: str, spec: Spec) -> str:
    names = [key for key, value in vars(module).items() if value is spec]
    own = name if name in names else next(iter(names), "") or (spec.name if _by_name(module).get(spec.name) else name)
    return f"{where}:{own}"


def _refuse_twins(pairs: Sequence[tuple[str, Spec | Declared]]) -> None:
    seen: dict[str, str] = {}
    for path, spec in pairs:
        if spec.name in seen:
            raise TargetError(f"two specs are called {spec.name!r} ({seen[spec.name]} and {path}): rename one of them")
        seen[spec.name] = path
