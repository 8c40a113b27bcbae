"""A factor that each row or element has of its own is named, and a step of forward that backward leaves out."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import Function
from torch.nn.functional import normalize

from gradspec import audit
from gradspec.findings import findings
from gradspec.law import Verdict
from gradspec.render import failure_text, finding_text


def made(forward: Any, backward: Any, *kept: int) -> Any:
    """Make a Function of two callables: in their source nothing can be written in another way."""

    class Made(Function):
        @staticmethod
        def forward(ctx, *args):
            ctx.save_for_backward(*(args[k] for k in kept))
            ctx.options = [a for a in args if not isinstance(a, torch.Tensor)]
            return forward(*args)

        @staticmethod
        def backward(ctx, y_bar):
            return backward(y_bar, *ctx.saved_tensors, *ctx.options)

    return Made


def segment_mean(x, index, groups):
    count = torch.bincount(index, minlength=groups).clamp(min=1)
    return x.new_zeros(groups, x.shape[1]).index_add(0, index, x) / count[:, None]


def scored(x, w):
    return (normalize(x, dim=-1) @ w).exp()


def mixed(x, w):
    return (x.softmax(0) * w).sin()


def rows(x, lengths):
    return x.square() / lengths[:, None]


SUM_FOR_MEAN = made(segment_mean, lambda y_bar, index, groups: (y_bar[index], None, None), 1)
SUM_WITH_COUNT = made(
    lambda x, index, groups: x.new_zeros(groups, x.shape[1]).index_add(0, index, x),
    lambda y_bar, index, groups: (
        ((y_bar / torch.bincount(index, minlength=groups).clamp(min=1)[:, None])[index],) + (None,) * 2
    ),
    1,
)
NOT_NORMALISED = made(scored, lambda y_bar, x, w: ((y_bar * scored(x, w)) @ w.T, None), 0, 1)
NO_SOFTMAX = made(mixed, lambda y_bar, x, w: (y_bar * (x.softmax(0) * w).cos() * w, None), 0, 1)
TWICE = made(
    lambda x, w: (x.sigmoid() * w).sin(),
    lambda y_bar, x, w: (y_bar * (x.sigmoid() * w).cos() * w * (x.sigmoid() * (1 - x.sigmoid())).square(), None),
    *(0, 1),
)
NO_DIVISION = made(rows, lambda y_bar, x, lengths: (2 * x * y_bar, None), 0, 1)
OF_EACH_ROW = made(lambda x: x.sin(), lambda y_bar, x: y_bar * x.cos() * torch.arange(2, 2 + len(x))[:, None].sqrt(), 0)
PAIRS = "(randn(6, 3), tensor([0, 0, 1, 3, 3, 3]), 5)"
W = "(randn(3, 4), randn(4, 2))"


@pytest.mark.parametrize("with_reference", [True, False], ids=["reference", "alone"])
@pytest.mark.parametrize(
    ("function", "reference", "call", "words"),
    [
        (SUM_FOR_MEAN, segment_mean, PAIRS, "as many times the right one as its number occurs in `args[1]`"),
        (
            SUM_WITH_COUNT,
            lambda x, index, groups: x.new_zeros(groups, x.shape[1]).index_add(0, index, x),
            PAIRS,
            "the right one divided by how often its number occurs in `args[1]`",
        ),
        (NOT_NORMALISED, scored, W, "right once the derivative of `normalize(args[0], dim=-1)` is applied to it"),
        (
            NO_SOFTMAX,
            mixed,
            "(randn(3, 4), randn(3, 4))",
            "right once the derivative of `args[0].softmax(0)` is applied",
        ),
        (
            TWICE,
            lambda x, w: (x.sigmoid() * w).sin(),
            "(randn(3, 4), randn(4))",
            "to which the derivative of `args[0].sigmoid()` is applied once more",
        ),
        (NO_DIVISION, rows, "(randn(3, 4), tensor([2, 3, 5]))", "each element is `args[1]` times the right one"),
        (
            OF_EACH_ROW,
            lambda x: x.sin(),
            "(randn(3, 4),)",
            "each row of dimension 0 is off by a factor of its own: 1.41, 1.73, 2",
        ),
    ],
    ids=["count", "no count", "normalize", "softmax", "twice", "lengths", "rows"],
)
def test_the_factor_is_named(function, reference, call, words, with_reference):
    named = reference if with_reference else None
    assert words in said(function, call, reference=named).likely


MIXED_UP = made(lambda x: x.sin(), lambda y_bar, x: y_bar * x.cos() + x * y_bar.flip(0) * y_bar.roll(1, 1), 0)


def test_what_no_factor_and_no_step_mends_is_given_none():
    reason = said(MIXED_UP, "(randn(3, 4),)", reference=lambda x: x.sin()).reason

    assert reason is None or reason.kind not in ("own factor", "step")


ONE_OF_TWO = made(
    lambda x, w: (x * w).sin(),
    lambda y_bar, x, w: (y_bar * (x * w).cos() * w, y_bar * (x * w).cos() * x + x.flip(0) * y_bar.roll(1, 1)),
    *(0, 1),
)


def test_with_a_reference_it_is_said_which_gradients_are_right():
    finding = said(ONE_OF_TWO, "(randn(3, 4), randn(3, 4))", reference=lambda x, w: (x * w).sin())

    assert finding.likely == "the gradient of `args[1]` is wrong, and right for `args[0]`"


WRONG_IN_SOME = made(
    lambda x: x.sin(), lambda y_bar, x: torch.where(x.abs() > 1.2, y_bar * x.tanh(), y_bar * x.cos()), 0
)


def test_one_element_that_happens_to_be_right_is_no_cause():
    call = "(tensor([[0.1, 1.5, -1.3, 0.2], [-0.4, 1.1, 1.9, -1.7], [0.7, -1.6, -1.1, 2.0]], requires_grad=True),)"

    assert "one element" not in said(WRONG_IN_SOME, call, reference=torch.sin).likely


def turned(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Rotated(Function):
    @staticmethod
    def forward(ctx, x, cos, sin):
        ctx.cos, ctx.sin = cos, sin
        return turned(x, cos, sin)

    @staticmethod
    def backward(ctx, y_bar):
        return turned(y_bar, ctx.cos, ctx.sin), None, None


def test_the_sign_of_what_is_kept_on_the_context_is_named():
    call = "(randn(2, 4, requires_grad=True), randn(2), randn(2))"
    finding = said(Rotated, call, reference=None)

    assert finding.likely.startswith("right with `-ctx.sin` in place of `ctx.sin` (test_own_factors.py:")


def test_a_factor_is_named_as_one_minus_an_argument():
    dropped = made(lambda x, p: x.sin() / (1 - p), lambda y_bar, x, p: (y_bar * x.cos(), None), 0)
    finding = said(dropped, "(randn(3), 0.3)", reference=lambda x, p: x.sin() / (1 - p))

    assert finding.likely == "every element is off by the factor 0.7, which is 1 - `args[1]`"


BOTH = made(lambda x, w: x * w, lambda y_bar, x, w: (2 * y_bar * w, y_bar * x.flip(0)), 0, 1)


def test_a_second_wrong_gradient_is_named_beside_the_first():
    finding = said(BOTH, "(randn(3), randn(3))", reference=lambda x, w: x * w)

    assert finding.message.startswith("gradient of `args[0]`")
    assert finding.details["also"] == "gradient of `args[1]`"
    verdict = Verdict(spec="both", law="vjp", case="one", finding=finding)
    assert "      expected   " in failure_text(verdict)
    assert "      also       gradient of `args[1]`\n" in failure_text(verdict, details=True)
    assert failure_text(verdict, details=True).count("args[1]") == 1


def test_names_of_cases_that_hold_commas_are_told_apart():
    calls = ["(randn(3), randn(3))", "(randn(2), randn(2))"]
    report = audit(BOTH, calls, laws=["vjp"], jobs=1, reference=lambda x, w: x * w).report
    (found, *_) = findings(report)

    assert "  Cases:  `(randn(3), randn(3))`, `(randn(2), randn(2))`" in finding_text(found)


def said(function: Any, call: str, *, reference: Any) -> Any:
    how = {"reference": reference} if reference else {}
    (found, *_) = findings(audit(function, [call], laws=["vjp", "surrogate"], jobs=1, **how).report)
    return found.verdict.finding
