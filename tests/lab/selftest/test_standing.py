"""A self-test with an earlier matrix measures what has changed, and comes to what a fresh one comes to."""

from __future__ import annotations

from dataclasses import replace
from pkgutil import iter_modules

import pytest

from gradspec.laws import LAWS
from gradspec.profile import load_profile
from gradspec.spec._kinds import kinds
from gradspec_lab import specimens
from gradspec_lab.selftest._record import Matrix, Subject
from gradspec_lab.selftest._run import selftest
from gradspec_lab.selftest._standing import Standing, sources, specimens_of
from gradspec_lab.specimens import DISEASED

NAMES = ("GradFactor.sign_flipped", "GradFactor.prints", "clipping_backward", "scale")
TODAY = sources()
FACTS = {"seed": 0, "profile": {"name": "quick"}}


@pytest.fixture(scope="module")
def fresh() -> Matrix:
    found = selftest(NAMES, exactly=True, jobs=1)
    assert found.measured == len(NAMES)
    return found


def with_another(matrix: Matrix, *names: str) -> Matrix:
    """Return a matrix as if some sources had been others when it was made."""
    return replace(matrix, sources={**matrix.sources, **{n: replace(matrix.sources[n], key="x") for n in names}})


def again(known: Matrix) -> Matrix:
    return selftest(NAMES, exactly=True, jobs=1, known=known)


def test_nothing_is_measured_where_nothing_has_changed(fresh: Matrix) -> None:
    found = again(fresh)
    assert (found.measured, found.subjects) == (0, fresh.subjects)
    assert found.provenance["date"] == fresh.provenance["date"]


@pytest.mark.parametrize("law", ["vjp", "cotangent_linearity", "global_state"])
def test_a_law_that_has_changed_is_asked_again_and_nothing_else_changes(fresh: Matrix, law: str) -> None:
    found = again(with_another(fresh, f"law {law}"))
    assert found.measured == len(NAMES)
    assert found.subjects == fresh.subjects


def test_a_law_that_noticed_nothing_before_is_entered(fresh: Matrix) -> None:
    blind = [
        replace(subject, killed_by=tuple(law for law in subject.killed_by if law != "vjp"))
        for subject in fresh.subjects
    ]
    found = again(with_another(replace(fresh, subjects=tuple(blind)), "law vjp"))
    assert found.subjects == fresh.subjects


def test_what_a_law_said_before_it_changed_is_forgotten(fresh: Matrix) -> None:
    before = [
        replace(subject, held=("vjp", *subject.held), other_words={"vjp": "nothing of it"})
        if subject.sort == "diseased"
        else replace(subject, held=tuple(law for law in subject.held if law != "vjp"))
        for subject in fresh.subjects
    ]
    found = again(with_another(replace(fresh, subjects=tuple(before)), "law vjp"))
    assert found.subjects == fresh.subjects
    assert "vjp" in next(subject for subject in found.subjects if subject.name == "scale").held


def test_a_disease_that_its_law_names_in_other_words_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    words = dict.fromkeys(DISEASED["clipping_backward"].caught_by, "quite another matter")
    monkeypatch.setitem(DISEASED, "clipping_backward", replace(DISEASED["clipping_backward"], caught_by=words))
    (subject,) = selftest(["clipping_backward"], exactly=True, jobs=1).subjects
    assert set(subject.other_words) == set(words)
    assert all(f"its own law {law} says something else: " in subject.fault for law in words)


def test_a_law_that_is_gone_is_asked_for_no_more(fresh: Matrix) -> None:
    more = [replace(s, killed_by=("no_such_law", *s.killed_by)) if s.killed_by else s for s in fresh.subjects]
    assert again(replace(fresh, subjects=tuple(more))).subjects == fresh.subjects


@pytest.mark.parametrize(
    ("moved", "all_anew"),
    [
        (("specimens function",), {"specimen"}),
        (("specimens text", "harness text"), set()),
        (("function grad_factor",), {"mutant"}),
        (("mutations",), {"mutant"}),
        (("judging",), {"specimen", "mutant"}),
        (("harness function",), {"specimen", "mutant"}),
        ((), set()),
    ],
)
def test_what_judges_or_makes_a_subject_moves_all_of_it(moved: tuple[str, ...], all_anew: set[str]) -> None:
    rows = (
        Subject(sort="diseased", name="sick", group="function", source="specimens function"),
        Subject(sort="mutant", name="F.prints", group="F", source="function grad_factor"),
    )
    matrix = Matrix(provenance=FACTS, sources=TODAY, population={}, subjects=rows)
    standing = Standing.of(with_another(matrix, *moved), TODAY, FACTS, LAWS)
    anew = {kind for kind, row in zip(("specimen", "mutant"), rows, strict=True) if not standing.is_current(row.name)}
    assert anew == all_anew


@pytest.mark.parametrize("facts", [{"seed": 1}, {"profile": {"name": "quick", "directions": 9}}, {"torch": "another"}])
def test_another_seed_profile_or_environment_measures_all(facts: dict[str, object]) -> None:
    row = Subject(sort="diseased", name="sick", group="function", source="specimens function")
    matrix = Matrix(provenance=FACTS, sources=TODAY, population={}, subjects=(row,))
    assert not Standing.of(matrix, TODAY, FACTS | facts, LAWS).is_current("sick")


def test_a_subject_that_crashed_is_measured_as_a_whole() -> None:
    row = Subject(sort="mutant", name="F.dies", group="F", source="function grad_factor", crash="died")
    matrix = Matrix(provenance=FACTS, sources=TODAY, population={}, subjects=(row,))
    standing = Standing.of(with_another(matrix, "law vjp"), TODAY, FACTS, LAWS)
    assert standing.of_laws("F.dies", row.source) == (None, frozenset())


def test_the_quick_profile_is_the_one_that_the_matrix_notes(fresh: Matrix) -> None:
    assert fresh.provenance["profile"]["directions"] == load_profile("quick").directions


def test_each_specimen_stands_on_the_modules_of_its_kind() -> None:
    for name, sick in DISEASED.items():
        found = [path for path, module in vars(specimens).items() if name in getattr(module, "DISEASED", {})]
        homes = TODAY[specimens_of(sick.spec.kind)].roots
        assert any(f"{specimens.__name__}.{path}" in homes for path in found), name


def test_a_module_of_specimens_holds_those_of_one_kind() -> None:
    homes = [home for kind in kinds() for home in TODAY[specimens_of(kind.name)].roots]
    assert sorted(homes) == sorted(f"{specimens.__name__}.{module.name}" for module in iter_modules(specimens.__path__))
