"""A call that was drawn so that a gradient is zero by chance is drawn anew."""

from dataclasses import replace

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec._audit._redrawn import with_seeds
from gradspec.findings import judge, sentence
from gradspec.law import Finding, Status


class Clip(Function):
    """Takes the mean where the sum is meant in the gradient of its level."""

    @staticmethod
    def forward(ctx, x, level):
        ctx.save_for_backward(x, level)
        return torch.minimum(x, level)

    @staticmethod
    def backward(ctx, y_bar):
        x, level = ctx.saved_tensors
        above = (x >= level).to(y_bar.dtype)
        return y_bar * (1 - above), (y_bar * above).mean()


class Dead(Clip):
    @staticmethod
    def backward(ctx, y_bar):
        return y_bar, torch.zeros(())


def surrogate_of(function, *cases):
    found = audit(function, cases, laws=["surrogate", "cotangent_linearity"])
    return {v.case: v.status for v in found.report.of(law="surrogate")}, found


def test_a_gradient_that_is_zero_by_chance_is_asked_about_where_it_is_not():
    chance, there = "(2 * randn(3, 2), tensor(2.5))", "(2 * randn(3, 2, seed=200), tensor(2.5))"
    said, found = surrogate_of(Clip, chance)

    assert said == {there: Status.BROKEN}
    assert f"In {chance}, a gradient is zero by chance: {there} is asked in its place" in str(found.report)
    assert surrogate_of(Clip, there)[0] == said


@pytest.mark.parametrize(
    "cases",
    [
        ("(2 * randn(3, 2, seed=0), tensor(2.5))",),
        ("(0.1 * rand(3, 2), tensor(2.5))",),
        ("(2 * randn(3, 2), tensor(2.5))", "(randn(3, 2), tensor(0.0))"),
        ((torch.rand(3, 2, dtype=torch.float64), torch.tensor(2.5, dtype=torch.float64)),),
    ],
    ids=["a seed is given", "no draw shows it", "another call shows it", "tensors"],
)
def test_a_call_stays_as_it_is(cases):
    said, found = surrogate_of(Clip, *cases)

    assert "by chance" not in str(found.report)
    assert len(said) == len(cases)


def test_what_no_call_shows_is_said_at_the_end():
    _, found = surrogate_of(Clip, "(0.1 * rand(3, 2), tensor(2.5))")

    assert "The calls do not show everything: a zero gradient of `level` would pass." in sentence(judge(found.report))


def test_a_seed_is_written_where_there_is_none():
    assert with_seeds("(randn(2), rand(3, seed=1), randint(0, 4, (2,)))", 7) == (
        "(randn(2, seed=7), rand(3, seed=1), randint(0, 4, (2,), seed=8))"
    )
    assert with_seeds("(ones(2,), 1)", 7) == "(ones(2,), 1)"
    assert with_seeds("@calls/case-1.safetensors", 7) == "@calls/case-1.safetensors"


def test_what_another_law_shows_is_not_said_to_be_seen_by_none():
    _, found = surrogate_of(Clip, "(0.1 * rand(3, 2), tensor(2.5))")
    (blind,) = (verdict for verdict in found.report.verdicts if verdict.status is Status.VACUOUS)
    seeing = replace(blind, law="vjp", finding=Finding(status=Status.HOLDS, details={"shows": ["gradient of `level`"]}))
    report = replace(found.report, verdicts=(*found.report.verdicts, seeing))

    assert "do not show everything" not in sentence(judge(report))
