"""The checks of a run: each law on each case of each spec of its kind, in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

from gradspec._ending import EndedError, endings_raise
from gradspec._engine._refusals import check_names, check_profile, check_specs, check_waivers
from gradspec._engine._within import LimitError, within
from gradspec.law import Law, Over
from gradspec.laws import LAWS, preserved_process_state
from gradspec.profile import Profile, load_profile
from gradspec.spec import Misuse, Spec
from gradspec.spec._contract import contract_faults
from gradspec.spec._kinds import maker_of
from gradspec.spec._sheet import qualified_name

#: From a seed and a device to what makes the arguments of a case.
Maker: TypeAlias = Callable[[int, str], Any]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One law on one case of one spec."""

    spec: Spec
    #: Where the spec is, as the command line takes it.
    path: str
    law: Law
    case: str
    #: Makes what makes the arguments of the case.
    maker: Maker
    #: The laws from whose violation one of this may follow.
    roots: tuple[Law, ...] = ()

    @property
    def cell(self) -> tuple[str, str, str]:
        """The names of spec, law and case."""
        return self.spec.name, self.law.name, self.case


def plan(
    specs: Sequence[Spec],
    laws: Sequence[Law] | None = None,
    profile: Profile | None = None,
    *,
    seed: int = 0,
    case: str | None = None,
    paths: Mapping[str, str] | None = None,
) -> list[Check]:
    """Return the checks of a run, in the order of specs, laws, cases. Arguments as for `verify`."""
    laws, profile = tuple(laws or LAWS), profile or load_profile("quick")
    check_specs(specs)
    names = [spec.name for spec in specs]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two specs are named {repeated[0]!r}: rename or remove one of them")
    check_names("a spec", names)
    check_profile(profile)
    if unknown := set(profile.laws) - {law.name for law in laws}:
        raise ValueError(f"profile {profile.name!r} names the unknown law {sorted(unknown)[0]!r}")
    for spec in specs:
        if spec.waivers:
            known = {n for over in get_args(Over) for n in _subjects(spec, over, profile, seed, maker_of(spec.kind))}
            check_waivers(spec, laws, known)
        _check_contract(spec, profile)
    return checks_of(specs, laws, profile, maker_of, seed=seed, case=case, paths=paths, known=LAWS)


def checks_of(
    specs: Sequence[Spec],
    laws: Sequence[Law],
    profile: Profile,
    makers: Callable[[str], Maker],
    *,
    seed: int = 0,
    case: str | None = None,
    paths: Mapping[str, str] | None = None,
    known: Sequence[Law] = (),
) -> list[Check]:
    """Return the checks of specs and laws, whether or not they can be asked for so.

    Arguments as for `plan`, `makers`: from a kind of spec to what makes what makes its arguments; and `known`: laws
    beside those that are asked, from whose violation one of these may follow.
    """
    checks, by_name = [], {law.name: law for law in (*known, *laws)}
    for spec in specs:
        mine = [law for law in laws if law.judges(spec.kind)]
        maker, path = makers(spec.kind), (paths or {}).get(spec.name, "")
        subjects = {over: _subjects(spec, over, profile, seed, maker) for over in {law.over for law in mine}}
        if not subjects.get("cases", True):
            raise ValueError(f"spec {spec.name!r} has no case: let its `cases` yield at least one")
        checks += [
            Check(spec=spec, path=path, law=law, case=name, maker=maker, roots=_named_in(by_name, law.explained_by))
            for law in mine
            if not profile.laws or law.name in profile.laws
            for name in (_asked(law, subjects[law.over], profile) if case is None else subjects[law.over])
            if case in (None, name)
        ]
    return checks


def _asked(law: Law, cases: Sequence[str], profile: Profile) -> Sequence[str]:
    """Return the cases on which a law runs: of a law that compiles as many as the profile says, evenly spread."""
    most = profile.compiled_cases
    if law.cost != "compile" or not most or len(cases) <= most:
        return cases
    return [cases[round(place * (len(cases) - 1) / max(1, most - 1))] for place in range(most)]


def with_required(laws: Sequence[Law], known: Sequence[Law]) -> list[Law]:
    """Return laws, and behind them those of the known ones that they require and that are not among them."""
    by_name = {law.name: law for law in (*known, *laws)}
    found = {law.name: law for law in laws}
    queue = list(laws)
    while queue:
        for law in _named_in(by_name, queue.pop().requires):
            if law.name not in found:
                found[law.name] = law
                queue.append(law)
    return list(found.values())


def with_roots(laws: Sequence[Law], known: Sequence[Law]) -> list[Law]:
    """Return laws, and behind them all that can decide what they say: what they require, and what they follow from."""
    by_name = {law.name: law for law in (*known, *laws)}
    required = with_required(laws, known)
    roots = {law.name: law for one in laws for law in _named_in(by_name, one.explained_by)}
    return list(({law.name: law for law in required} | roots).values())


def _named_in(known: Mapping[str, Law], names: Sequence[str]) -> tuple[Law, ...]:
    return tuple(known[name] for name in names if name in known)


def _check_contract(spec: Spec, profile: Profile) -> None:
    """Refuse a spec whose words on its arguments are not what its calls are: here, since no law's cell is about them.

    They are judged on the calls of one seed on the CPU, so that what is said does not hang on a draw or a device.
    """
    if not any(a.shape or a.dtype or a.range for a in spec.described_arguments):
        return
    make = maker_of(spec.kind)(0, "cpu")
    try:
        with _listing(spec, profile), preserved_process_state("cpu", 0):
            calls, wrong = list(spec.cases(make)), list(misuses(spec, make))
    except _NoCaseError:
        raise
    except (Exception, SystemExit):
        return  # running it raises again, and that is a verdict
    for fault in contract_faults(spec, calls, wrong):
        raise ValueError(f"spec {spec.name!r}, {fault}")


def _subjects(spec: Spec, over: str, profile: Profile, seed: int, maker: Maker) -> list[str]:
    make = maker(seed, profile.device)
    names: list[str] = []
    try:
        with _listing(spec, profile), preserved_process_state(profile.device, seed):
            for name in _named(spec, over, make):
                names.append(name)  # noqa: PERF402 - what there is before the generator raises is kept
    except _NoCaseError:
        raise
    except (Exception, SystemExit):
        names.append("(making the cases)")  # running it raises again, and gives the verdict its message
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"spec {spec.name!r} has two cases named {repeated[0]!r}: rename or remove one of them")
    check_names(f"a case of spec {spec.name!r}", names)
    return names


def _named(spec: Spec, over: str, make: Any) -> Iterator[str]:
    if over == "documents":
        yield from (qualified_name(document) for document in spec.documented)
    elif over == "misuses":
        yield from (_name_of(spec, getattr(misuse, "case", misuse)) for misuse in misuses(spec, make))
    else:
        yield from (_name_of(spec, case) for case in spec.cases(make))


class _NoCaseError(ValueError):
    """A generator of cases yielded something else, or does not come to an end."""


@contextmanager
def _listing(spec: Spec, profile: Profile) -> Iterator[None]:
    """Hold the generators of a spec to the limit of a check, and to this process."""
    try:
        with endings_raise(), within(profile.time_limit):
            yield
    except EndedError as error:
        raise _NoCaseError(f"listing the cases of spec {spec.name!r} ended the interpreter: {error}: fix it") from None
    except LimitError as error:
        raise _NoCaseError(
            f"listing the cases of spec {spec.name!r} gave {error}: let them end, or raise --time-limit"
        ) from None


def _name_of(spec: Spec, case: Any) -> str:
    name = getattr(case, "name", None)
    if not isinstance(name, str):
        kind = type(case).__name__
        raise _NoCaseError(
            f"spec {spec.name!r} yields a {kind} where a case is expected: write a tuple of its arguments, or "
            "Case(name=..., args=(...,))"
        )
    return name


def misuses(spec: Spec, make: Any) -> Iterator[Misuse]:
    """Return the wrong calls of a spec, none where it names none."""
    return spec.raises(make) if spec.raises else iter(())
