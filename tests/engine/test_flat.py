"""Lists, dicts, keyword-only and variadic arguments in a Function's spec."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.autograd import Function

from gradspec import Case, FunctionSpec, Status, Supports, verify
from gradspec.laws import LAWS

QUICK = [law for law in LAWS if law.judges("function") and law.cost == "ms"]


class Sum(Function):
    """The weighted sum of tensors."""

    @staticmethod
    def forward(ctx, weight, *features):
        ctx.save_for_backward(weight, *features)
        return sum(w * f for w, f in zip(weight, features, strict=True))

    @staticmethod
    def backward(ctx, y_bar):
        weight, *features = ctx.saved_tensors
        asked, *each = ctx.needs_input_grad
        first = torch.stack([(y_bar * f).sum() for f in features]) if asked else None
        return first, *(w * y_bar if needed else None for w, needed in zip(weight, each, strict=True))


def plain(weight, features):
    return sum(w * f for w, f in zip(weight, features, strict=True))


def in_a_list(weight, features):
    return Sum.apply(weight, *features)


def lost_in_a_list(weight, features):
    return Sum.apply(weight, *[f.detach() for f in features])


def by_name(features, *, weight):
    return Sum.apply(weight, *features.values())


def one_by_one(weight, *features):
    return Sum.apply(weight, *features)


def list_cases(make):
    yield Case(name="two", args=(make(2), [make(3, 4), make(3, 4)]))
    yield Case(name="three", args=(make(3), [make(2), make(2), make(2)]))


def dict_cases(make):
    yield Case(name="dict", args=({"a": make(3), "b": make(3)},), kwargs={"weight": make(2)})


def star_cases(make):
    yield Case(name="star", args=(make(2), make(3), make(3)))


def spec(function, primal, cases):
    return FunctionSpec(
        name="sum",
        function=function,
        primal=primal,
        surrogate=primal,
        cases=cases,
        wrt=("weight", "features"),
        supports=Supports.eager(),
    )


def test_a_list_of_tensors_is_judged_tensor_by_tensor():
    report = verify([spec(in_a_list, plain, list_cases)], QUICK)
    lost = verify([spec(lost_in_a_list, plain, list_cases)], QUICK)

    assert report.failures == ()
    assert {v.case for v in report.of(law="vjp") if v.status is Status.HOLDS} == {"two", "three"}
    first = next(v for v in lost.failures if v.law == "vjp")
    assert "`features_0`" in first.finding.argument


@pytest.mark.parametrize(
    ("function", "primal", "cases"),
    [
        (by_name, lambda features, *, weight: plain(weight, features.values()), dict_cases),
        (one_by_one, lambda weight, *features: plain(weight, features), star_cases),
    ],
    ids=["a dict and a keyword", "a star"],
)
def test_other_ways_to_call(function, primal, cases):
    report = verify([spec(function, primal, cases)], QUICK)

    assert report.failures == ()
    assert {v.status for v in report.of(law="vjp")} == {Status.HOLDS}


def test_an_implementation_that_is_given_is_not_denied_where_the_call_is_taken_apart():
    given = replace(spec(in_a_list, plain, list_cases), implementation=Sum)
    (first, *_) = verify([given], [law for law in LAWS if law.name == "raw_returns"]).verdicts

    assert first.status is Status.NOT_APPLICABLE
    assert "a call with lists, dicts or variadic arguments" in first.finding.message
