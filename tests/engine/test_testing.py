"""`assert_law` passes for a law that can fail, and says what is wrong with any other."""

from __future__ import annotations

import pytest

from gradspec import Case, FunctionSpec, Law, Supports
from gradspec.law import HOLDS, Trial, broken, not_applicable
from gradspec.spec import Make
from gradspec.testing import assert_law


def spec(name, function):
    def cases(make: Make):
        yield Case(name="three", args=(make(3),))
        yield Case(name="empty", args=(make(0),))

    return FunctionSpec(
        name=name,
        function=function,
        primal=lambda x: x,
        surrogate=lambda x: x,
        wrt=("x",),
        cases=cases,
        supports=Supports.all(),
    )


def law(check):
    return Law(name="finite", family="values", statement="F(x) < inf", check=check, doc="Finite values are finite.")


def finite(trial: Trial):
    y = trial.spec.function(*trial.case.args)
    if not y.numel():
        return not_applicable("nothing to compare")
    return HOLDS if y.isfinite().all() else broken("an infinite value", likely="it divides by zero")


SOUND, BROKEN = spec("plus_one", lambda x: x + 1), spec("over_zero", lambda x: x / 0)


@pytest.mark.parametrize("match", ["", "an infinite value", "divides by"])
def test_a_law_that_can_tell_them_apart_passes(match):
    assert_law(law(finite), sound=SOUND, broken=BROKEN, match=match)


@pytest.mark.parametrize(
    ("check", "sound", "wrong", "said"),
    [
        (
            finite,
            BROKEN,
            BROKEN,
            r"finite does not hold on over_zero, which is sound:\n  three: broken: an infinite value",
        ),
        (finite, SOUND, SOUND, r"finite lets plus_one pass, which breaks it:\n  three: holds\n  empty: not applicable"),
        (lambda trial: HOLDS, SOUND, BROKEN, r"finite lets over_zero pass, which breaks it: every case holds$"),
        (
            lambda trial: not_applicable("never"),
            SOUND,
            BROKEN,
            r"finite compares nothing on plus_one:\n  three: not app",
        ),
        (
            lambda trial: 1 / 0,
            SOUND,
            BROKEN,
            r"finite does not hold on plus_one, which is sound:\n  three: broken: raised",
        ),
    ],
    ids=["breaks on the sound", "lets pass", "says nothing but holds", "compares nothing", "raises"],
)
def test_any_other_law_is_said_to_be_one(check, sound, wrong, said):
    with pytest.raises(AssertionError, match=said):
        assert_law(law(check), sound=sound, broken=wrong)


def test_another_finding_than_the_expected_one_is_shown():
    with pytest.raises(AssertionError, match=r"something else than 'NaN' in over_zero:\n  three: broken: an infinite"):
        assert_law(law(finite), sound=SOUND, broken=BROKEN, match="NaN")


def test_a_law_of_another_kind_of_spec_is_said():
    of_modules = Law(name="loads", family="state", statement="a", check=finite, doc="A.", kinds=("module",))
    with pytest.raises(AssertionError, match="loads does not judge a function such as plus_one: it judges module"):
        assert_law(of_modules, sound=SOUND, broken=BROKEN)
