"""Parts of a run on several machines are the run; what two records say of one cell must be the same."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest

from gradspec import Case, FunctionSpec, Supports, verify
from gradspec._engine._merge import MergeError, differing, labels, merge
from gradspec._engine._plan import plan
from gradspec._engine._shard import shard_of
from gradspec._engine._verify import run_plan
from gradspec.functions import FUNCTIONS
from gradspec.law import Status
from gradspec.laws import LAWS
from gradspec.profile import load_profile
from gradspec.report import read_records, records_to_json

QUICK = load_profile("quick")


def cases(make):
    # Where x is negative the surrogate is flat: these show nothing, and only the last case, if any, does.
    yield from (Case(name=f"negative {number}", args=(make(3, low=-2, high=-1),)) for number in range(5))


def flat(x):
    return x.clamp(min=0)


FLAT = FunctionSpec(
    name="flat",
    function=flat,
    primal=flat,
    surrogate=flat,
    wrt=("x",),
    cases=cases,
    supports=Supports.all(),
)
DOUBLE = FunctionSpec(
    name="double",
    function=lambda x: 2 * x,
    primal=lambda x: 2 * x,
    surrogate=lambda x: 3 * x,
    wrt=("x",),
    cases=lambda make: (Case(name=f"case {number}", args=(make(3),)) for number in range(4)),
    supports=Supports.all(),
)
SPECS = (FLAT, DOUBLE)
CHOSEN = [law for law in LAWS if law.name in ("primal", "vjp", "adjoint", "second_order")]


def said(report):
    return {(v.spec, v.law, v.case): v.finding for v in report.verdicts}


@pytest.fixture(scope="module")
def whole():
    return verify(SPECS, CHOSEN, isolate=False)


def part(number, of):
    every = plan(SPECS, CHOSEN, QUICK)
    checks = shard_of(every, number, of)
    report = run_plan(checks, SPECS, CHOSEN, QUICK, isolate=False, whole=False)
    mine = {check.cell for check in checks}
    return replace(report, missing=tuple(check.cell for check in every if check.cell not in mine))


@pytest.mark.parametrize("of", [1, 2, 3, 8, 40])
def test_that_every_check_is_in_one_part_and_all_laws_of_a_case_are_together(of):
    checks = plan(FUNCTIONS)
    parts = [shard_of(checks, number, of) for number in range(1, of + 1)]

    assert Counter(check.cell for part in parts for check in part) == Counter(check.cell for check in checks)
    homes = [{(check.spec.name, check.case) for check in part} for part in parts]
    assert sum(map(len, homes)) == len(set().union(*homes))
    assert [shard_of(checks, number, of) for number in range(1, of + 1)] == parts


def test_that_no_part_has_much_more_to_do_than_another():
    def check(number):
        law = SimpleNamespace(cost="compile" if number % 2 else "ms")
        return SimpleNamespace(spec=SimpleNamespace(name="one"), case=str(number), law=law)

    checks = [check(number) for number in range(8)]
    for of in (1, 2, 4):
        parts = [shard_of(checks, number, of) for number in range(1, of + 1)]
        assert [Counter(check.law.cost for check in part) for part in parts] == of * [{"compile": 4 / of, "ms": 4 / of}]


def test_that_the_parts_together_say_what_the_whole_says_also_of_what_shows_nothing(whole):
    parts = [part(number, 3) for number in (1, 2, 3)]
    merged = merge([(f"{number}.json", report) for number, report in enumerate(parts)])

    assert {v.status for v in whole.verdicts} >= {Status.VACUOUS, Status.BROKEN, Status.HOLDS}
    assert not any(v.status is Status.VACUOUS for report in parts for v in report.verdicts)
    (one,) = merged.reports
    assert said(one) == said(whole)
    assert (list(one.sheets), list(one.laws), one.sources) == (list(whole.sheets), list(whole.laws), whole.sources)
    assert (merged.notes, one.missing, one.incomplete) == ((), (), "")


def test_that_a_part_that_is_not_there_is_named():
    (one,) = merge([("a.json", part(1, 3)), ("b.json", part(3, 3))]).reports

    assert set(one.missing) == {(v.spec, v.law, v.case) for v in part(2, 3).verdicts}
    assert "of the cells that were asked for are not measured" in one.incomplete


def test_that_records_of_one_environment_must_say_the_same(whole):
    (broken,) = (v for v in whole.verdicts if (v.law, v.spec, v.case) == ("vjp", "double", "case 1"))
    held = replace(broken, finding=replace(broken.finding, status=Status.HOLDS, rank=""))
    other = replace(whole, verdicts=tuple(held if v == broken else v for v in whole.verdicts))

    with pytest.raises(MergeError, match=r"disagree: double · vjp · case 1 is broken in a, holds in b$"):
        merge([("a", whole), ("b", other)])


def test_that_an_answer_goes_before_none_in_time_and_it_is_said(whole):
    (broken,) = (v for v in whole.verdicts if (v.law, v.spec, v.case) == ("vjp", "double", "case 1"))
    late = replace(broken, finding=replace(broken.finding, status=Status.NOT_MEASURED, details={"limit": "time"}))
    slow = replace(whole, verdicts=tuple(late if v == broken else v for v in whole.verdicts))
    note = "conflict: double · vjp · case 1 {} in a, {} in b: the answer that came is kept"

    for pair, words in (
        ((slow, whole), ("is not measured", "is broken")),
        ((whole, slow), ("is broken", "is not measured")),
    ):
        merged = merge(list(zip("ab", pair, strict=True)))
        assert said(merged.reports[0]) == said(whole)
        assert merged.notes == (note.format(*words),)


def test_that_records_of_other_sources_are_refused(whole):
    name = "law vjp"
    edited = replace(whole, sources={**whole.sources, name: replace(whole.sources[name], key="another")})

    with pytest.raises(MergeError, match=r"^a and b were measured of different sources \(law vjp\): measure both"):
        merge([("a", whole), ("b", edited)])


def test_that_environments_stay_side_by_side_and_their_differences_are_found(whole, tmp_path):
    (broken,) = (v for v in whole.verdicts if (v.law, v.spec, v.case) == ("vjp", "double", "case 1"))
    held = replace(broken, finding=replace(broken.finding, status=Status.HOLDS))
    newer = replace(
        whole,
        provenance={**whole.provenance, "torch": "2.99.0"},
        verdicts=tuple(held if v == broken else v for v in whole.verdicts if v.case != "case 3"),
    )
    (tmp_path / "two.json").write_text(records_to_json(merge([("a", whole), ("b", newer)]).reports))
    reports = read_records(tmp_path / "two.json")

    assert list(map(said, reports)) == [said(whole), said(newer)]
    assert labels(reports) == [f"torch {whole.provenance['torch']}", "torch 2.99.0"]
    assert differing(reports) == {("double", "vjp", "case 1"): [Status.BROKEN, Status.HOLDS]}
    again = merge([("c", reports[0]), ("d", reports[1]), ("a", whole)])
    assert [len(report.verdicts) for report in again.reports] == [len(report.verdicts) for report in reports]
