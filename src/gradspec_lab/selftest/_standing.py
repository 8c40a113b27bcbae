"""What of an earlier kill matrix is still valid: by the subject, by its laws, and by what ran them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from gradspec._engine._plan import with_required
from gradspec._engine._sources import sources as of_specs
from gradspec._record import Source, reusable, roots_of
from gradspec.functions import FUNCTIONS
from gradspec.law import Law
from gradspec.laws import LAWS
from gradspec.spec import FunctionSpec, Spec
from gradspec.spec._kinds import kinds
from gradspec_lab import specimens
from gradspec_lab.selftest._record import Matrix, Subject
from gradspec_lab.selftest._seeds import sound_specs

#: The kinds of which torch's own checkers are asked.
_FUNCTIONS = ("function", "operator")
#: What decides which sound specs are run under many seeds, and how everything is.
_SWEEP = ("gradspec_lab.selftest._seeds:sound_specs", "gradspec_lab.selftest._under_seeds:answers_of")
#: What decides which subjects there are, and how each is judged.
_HOW = {
    "mutations": ("gradspec_lab.selftest._mutations:MUTATIONS", "gradspec_lab.selftest._mutants:judge_mutant"),
    "judging": ("gradspec_lab.selftest._judging:_Run", "gradspec_lab.selftest._judging:subject_of"),
    "stock": ("gradspec_lab.selftest._stock:judge", "gradspec_lab.selftest._stock:cases_for"),
}


@dataclass(frozen=True)
class Standing:
    """Which rows of an earlier matrix can be kept, and which laws must be asked again for the others."""

    rows: Mapping[str, Subject]
    #: The names of the sources that have changed, or are new.
    changed: frozenset[str]
    every_law: Sequence[Law]

    @classmethod
    def of(
        cls, known: Matrix | None, today: Mapping[str, Source], provenance: Mapping[str, Any], laws: Sequence[Law]
    ) -> Standing:
        """Compare an earlier matrix with today's sources."""
        if known is None or not reusable(known.provenance, provenance):
            return cls({}, frozenset(today), laws)
        changed = frozenset(name for name, source in today.items() if not source.agrees(known.sources.get(name)))
        return cls({subject.name: subject for subject in known.subjects}, changed, laws)

    def moved(self, source: str) -> bool:
        """Whether a source has changed."""
        return source in self.changed

    @property
    def laws(self) -> frozenset[str]:
        """The laws that must be asked again: they have changed, or one that they require or that implies them has."""
        behind = {law.name: with_required([law], self.every_law) for law in self.every_law}
        return frozenset(
            law.name
            for law in self.every_law
            if any(self.moved(f"law {name}") for name in (*(one.name for one in behind[law.name]), *law.implied_by))
        )

    def of_laws(self, name: str, source: str) -> tuple[Subject | None, frozenset[str]]:
        """Return what is known of a subject and the laws that it must be held to again; None: to all of them."""
        known = self.rows.get(name)
        if known is None or known.crash or known.source != source or self._all_moved(known.sort, source):
            return None, frozenset()
        gone = frozenset(known.killed_by) - {law.name for law in self.every_law}
        return known, self.laws | gone

    def is_current(self, name: str, *, stock: bool = False) -> bool:
        """Whether nothing is to be measured of a subject."""
        known = self.rows.get(name)
        if known is None or self.laws or self._all_moved(known.sort, known.source):
            return False
        if set(known.killed_by) - {law.name for law in self.every_law}:
            return False
        return known.sort == "mutant" or known.group not in _FUNCTIONS or not stock or self._knows_stock(known)

    def _knows_stock(self, known: Subject) -> bool:
        return bool(known.stock) and not self.moved("stock")

    def _all_moved(self, sort: str, source: str) -> bool:
        kind = FunctionSpec.kind if sort == "mutant" else source.removeprefix("specimens ")
        how = ["judging", f"harness {kind}", source]
        return any(map(self.moved, [*how, "mutations"] if sort == "mutant" else how))


def sources_of_seeds() -> dict[str, Source]:
    """Return what a run under many seeds depends on."""
    of_sound = of_specs(sound_specs(), ())
    return _of_laws() | _of_specimens() | of_sound | {"sweep": Source.of(*_SWEEP)}


def sources() -> dict[str, Source]:
    """Return what a self-test depends on."""
    found = _of_laws()
    found |= {name: Source.of(*roots) for name, roots in _HOW.items()}
    found |= _of_specimens()
    for spec in FUNCTIONS:
        source = of_specs([spec], ())
        found[function_of(spec.name)] = source[f"spec {spec.name}"]
    return found


def _of_laws() -> dict[str, Source]:
    found = {f"law {law.name}": Source.of("gradspec", *roots_of((law.check.__module__,))) for law in LAWS}
    return found | {f"harness {kind.name}": Source.of("gradspec", kind.maker.__module__) for kind in kinds()}


def _of_specimens() -> dict[str, Source]:
    homes = {kind.name: _modules_of(kind.name) for kind in kinds()}
    return {specimens_of(kind): Source.of(*found) for kind, found in homes.items()}


def specimens_of(kind: str) -> str:
    """Return the name of the source of the specimens of a kind: all of them, for one is often a variant of another."""
    return f"specimens {kind}"


def function_of(spec: str) -> str:
    """Return the name of the source of the mutants of a function."""
    return f"function {spec}"


def _modules_of(kind: str) -> list[str]:
    """Return the import paths of the modules that hold the specimens of a kind."""
    homes = [import_module(f"{specimens.__name__}.{module.name}") for module in iter_modules(specimens.__path__)]
    return [home.__name__ for home in homes if any(spec.kind == kind for spec in _specs_in(home))]


def _specs_in(home: ModuleType) -> Iterator[Spec]:
    yield from (value for value in vars(home).values() if isinstance(value, Spec))
    yield from (disease.spec for disease in getattr(home, "DISEASED", {}).values())
