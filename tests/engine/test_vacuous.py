"""A law that would hold for a wrong result on every case of a spec is vacuous, and never counted as holding."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.autograd import Function

from gradspec import Case, FunctionSpec, Status, verify
from gradspec.laws import LAWS

BY_NAME = {law.name: law for law in LAWS}


class DeadSign(Function):
    """A sign whose backward is zero everywhere: no straight-through estimator at all."""

    @staticmethod
    def forward(ctx, x):
        return x.sign()

    @staticmethod
    def backward(ctx, y_bar):
        return 0 * y_bar


def spec(*rows, **more):
    def cases(make):
        for number, row in enumerate(rows):
            yield Case(name=f"case {number}", args=(torch.tensor(row, dtype=torch.float64),))

    return FunctionSpec(
        name="dead_sign",
        function=DeadSign.apply,
        primal=lambda u: u.sign(),
        surrogate=lambda u: u.clamp(-1, 1),
        wrt=("u",),
        cases=cases,
        **more,
    )


def statuses(found, law="vjp"):
    return [verdict.status for verdict in found.of(law=law)]


FLAT = ([2.5, -3.0], [5.0, -7.5])


def test_a_zero_gradient_does_not_pass_where_every_case_is_flat():
    report = verify([spec(*FLAT)], [BY_NAME["primal"], BY_NAME["vjp"]])

    (first, second) = report.of(law="vjp")
    assert statuses(report, "primal") == [Status.HOLDS] * 2
    assert first.status is second.status is Status.VACUOUS
    assert first.finding.message == "a zero gradient of `u` would pass: the right one is 0 on all 2 cases"
    assert "give a case with -1 < u < 1" in first.finding.likely
    assert report.failures == report.of(law="vjp")


def test_one_case_with_a_slope_is_enough_to_judge_the_law():
    report = verify([spec(*FLAT, [0.25, -3.0])], [BY_NAME["vjp"]])
    honest = replace(spec(*FLAT, [0.25, -3.0]), function=lambda u: u.clamp(-1, 1), primal=spec().surrogate)

    assert statuses(report) == [Status.HOLDS, Status.HOLDS, Status.BROKEN]
    assert statuses(verify([honest], [BY_NAME["vjp"]])) == [Status.HOLDS] * 3


def test_a_case_asked_for_alone_says_nothing_of_the_others():
    report = verify([spec(*FLAT)], [BY_NAME["vjp"]], case="case 0")

    assert statuses(report) == [Status.HOLDS]


def test_a_gradient_that_is_zero_everywhere_is_declared_and_probed():
    step = replace(spec(*FLAT, zero_gradient=("u",)), surrogate=lambda u: u.sign())

    assert statuses(verify([step], [BY_NAME["vjp"]])) == [Status.HOLDS] * 2
    (lie, _) = verify([spec(*FLAT, zero_gradient=("u",))], [BY_NAME["vjp"]]).verdicts
    assert lie.status is Status.BROKEN
    assert "declared to be zero, and the surrogate's is not: with -1 < u < 1" in lie.finding.message
    with pytest.raises(ValueError, match="zero_gradient names 'y', which is not in wrt"):
        spec(*FLAT, zero_gradient=("y",))


def test_two_elements_that_are_equal_on_every_case_could_be_swapped():
    ones = replace(spec([3.0, 2.0]), function=lambda u: u.sign())

    (verdict,) = verify([ones], [BY_NAME["primal"]]).verdicts
    assert verdict.status is Status.VACUOUS
    assert verdict.finding.message == "two elements of the value could be swapped: all are equal on the one case"


def test_a_law_that_compares_nothing_is_never_vacuous():
    report = verify([spec(*FLAT)], [BY_NAME["global_state"], BY_NAME["freed"]])

    assert not [v for v in report.verdicts if v.status is Status.VACUOUS]


def test_what_is_kept_is_judged_anew_with_the_cases_that_there_are_now():
    laws = [BY_NAME["primal"], BY_NAME["vjp"]]
    flat = verify([spec(*FLAT)], laws)
    sloped = replace(spec(*FLAT, [0.25, -3.0]), function=lambda u: u.clamp(-1, 1), primal=spec().surrogate)

    assert statuses(verify([spec(*FLAT)], laws, known=flat)) == [Status.VACUOUS] * 2
    assert statuses(verify([sloped], laws, known=flat)) == [Status.HOLDS] * 3
