"""A profile bounds the cases on which a law that compiles runs, and a part of them says nothing of the rest."""

from __future__ import annotations

from dataclasses import replace

from gradspec import verify
from gradspec._engine._plan import plan
from gradspec.functions import GRAD_FACTOR
from gradspec.laws import LAWS
from gradspec.profile import load_profile
from gradspec.spec import Case

COMPILE = next(law for law in LAWS if law.name == "compile")
PRIMAL = next(law for law in LAWS if law.name == "primal")


def cases_of(law, **how):
    profile = replace(load_profile("quick"), **how)
    return [check.case for check in plan([GRAD_FACTOR], [PRIMAL, COMPILE], profile) if check.law.name == law]


def test_a_law_that_compiles_runs_on_a_spread_that_has_the_first_case_and_the_last():
    every = cases_of("primal")

    assert cases_of("compile", compiled_cases=0) == every
    assert cases_of("compile", compiled_cases=len(every)) == every
    assert cases_of("compile", compiled_cases=1) == every[:1]
    assert cases_of("compile", compiled_cases=3) == [every[0], every[(len(every) - 1) // 2], every[-1]]
    assert cases_of("primal", compiled_cases=3) == every


def test_a_case_that_is_asked_for_is_not_left_out():
    name = cases_of("primal")[1]
    checks = plan([GRAD_FACTOR], [COMPILE], replace(load_profile("quick"), compiled_cases=1), case=name)

    assert [check.case for check in checks] == [name]


def test_the_profile_that_bounds_nothing_is_the_one_of_the_pages():
    assert load_profile("quick").compiled_cases == 8
    assert load_profile("every-case") == replace(load_profile("quick"), name="every-case", compiled_cases=0)


def test_a_law_that_ran_on_a_part_of_the_cases_is_not_said_to_show_nothing():
    def cases(make):
        yield Case(name="zeros", args=(make(3) * 0, 0.5))
        yield Case(name="numbers", args=(make(3), 0.5))

    spec = replace(GRAD_FACTOR, cases=cases, raises=None, documented=(), arguments=())
    report = verify([spec], [PRIMAL, COMPILE], replace(load_profile("quick"), compiled_cases=1))

    assert {(v.law, v.case): str(v.status) for v in report.verdicts} == {
        ("primal", "zeros"): "holds",
        ("primal", "numbers"): "holds",
        ("compile", "zeros"): "holds",
    }
