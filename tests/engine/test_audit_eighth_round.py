"""Causes that a round of public reports asked for: an option, one slice of a mask, what is missing where zeros are."""

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.law import Status


class Product(Function):
    """a @ b or a.T @ b; the gradient of b is right of the first alone."""

    @staticmethod
    def forward(ctx, a, b, transpose):
        ctx.save_for_backward(a, b)
        ctx.transpose = transpose
        return a.T @ b if transpose else a @ b

    @staticmethod
    def backward(ctx, y_bar):
        a, b = ctx.saved_tensors
        if ctx.transpose:
            return b @ y_bar.T, a @ (a @ y_bar), None
        return y_bar @ b.T, a.T @ y_bar, None


class Steps(Function):
    """A state that each step keeps where its mask says so; backward reads the mask of the first step."""

    @staticmethod
    def forward(ctx, x, mask):
        ctx.save_for_backward(x, mask)
        state = torch.zeros_like(x[0])
        for one, keep in zip(x, mask, strict=True):
            state = torch.where(keep > 0, state, 0.5 * state + one.sin())
        return state

    @staticmethod
    def backward(ctx, y_bar):
        x, mask = ctx.saved_tensors
        x_bar = torch.zeros_like(x)
        for step in reversed(range(len(x))):
            keep = mask.view(-1)[: y_bar.numel()].view_as(y_bar) > 0
            x_bar[step] = torch.where(keep, 0.0, y_bar * x[step].cos())
            y_bar = torch.where(keep, y_bar, 0.5 * y_bar)
        return x_bar, None


class Turned(Function):
    """Moves a point, and turns it: the gradient of the turn is left as zeros."""

    @staticmethod
    def forward(ctx, x, axis):
        ctx.save_for_backward(x, axis)
        return x + torch.linalg.cross(axis, x) + axis

    @staticmethod
    def backward(ctx, y_bar):
        x, axis = ctx.saved_tensors
        return y_bar + torch.linalg.cross(y_bar, axis) + 0 * x, y_bar + torch.zeros_like(y_bar)


class Squeezed(Function):
    """Divides by the number of positive elements; a dimension of size 1 falls away with the other one."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.sum(-1, keepdim=True)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        total = x.sum(-1, keepdim=True)
        inner = (y_bar * x).sum(-1, keepdim=True).squeeze()
        return y_bar * total + inner[..., None]


class Returned(Function):
    """Returns what was meant to be multiplied."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin() * x

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        outer = x.sin() + x * x.cos()
        inner = outer.square() + x
        return y_bar * (inner + 0 * outer)


class KeepsTwice(Function):
    """Changes what it has kept, so that a second backward has another sign."""

    @staticmethod
    def forward(ctx, x):
        ctx.kept = x.cos()
        return x.sin()

    @staticmethod
    def backward(ctx, y_bar):
        return -y_bar * ctx.kept.neg_()


class Conjugate(Function):
    """Takes complex numbers, and does not conjugate."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, y_bar):
        x, w = ctx.saved_tensors
        return y_bar * w, (y_bar * x).real


def finding_of(function, case, law="surrogate"):
    (verdict,) = audit(function, [case], laws=[law]).report.of(law=law)
    assert verdict.status is Status.BROKEN, verdict.finding
    return verdict.finding


@pytest.mark.parametrize(
    ("function", "case", "said"),
    [
        pytest.param(  # the search for a repair ends in vain before
            Product,
            "(randn(3, 3), randn(3, 3), True)",
            "right where `transpose` is False, and wrong where it is True",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            Steps,
            "(randn(4, 3), tensor([[0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, 0]]))",
            "right where `mask` is the same all along dimension 0, and wrong where it is not",
            marks=pytest.mark.slow,
        ),
        (Squeezed, "(randn(2, 1, 4),)", "squeeze(-1)"),
        (Conjugate, "(randn(4, dtype=complex64), randn(4))", "conj"),
    ],
)
def test_the_cause_is_named(function, case, said):
    assert said in finding_of(function, case).likely


def test_a_term_that_is_missing_where_zeros_are_made_is_named():
    said = finding_of(Turned, "(randn(2, 3), randn(2, 3))").likely
    assert "torch.zeros_like(y_bar) + torch.linalg.cross(x, y_bar)" in said


def test_another_name_that_is_returned_is_named():
    assert "outer" in finding_of(Returned, "(randn(4),)").likely


def test_the_line_that_changes_what_forward_keeps_is_named():
    said = finding_of(KeepsTwice, "(randn(4),)", "retained_graph").likely
    assert said.startswith("backward changes what forward keeps for it: aten.neg_ (test_audit_eighth_round.py:")


class Recomputes(Function):
    """Differentiates itself in backward; without its last detach() backward would call itself."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        with torch.enable_grad():
            y = x / x.square().mean().sqrt().detach()
            y *= weight
            y += bias
            ctx.save_for_backward(x, y)
        return y.detach()

    @staticmethod
    def backward(ctx, y_bar):
        x, y = ctx.saved_tensors
        (x_bar,) = torch.autograd.grad(y, x, y_bar / (y + 1e-6))
        return x_bar * x, None, None


@pytest.mark.slow
def test_what_would_call_itself_without_a_cut_is_judged():
    x, weight, bias = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((2, 4), (4,), (4,)))
    Recomputes.apply(x, weight, bias).sum().backward()  # a fork of a process that has run backward has no more threads
    (verdict,) = audit(Recomputes, [(x, weight, bias)], laws=["surrogate"]).report.verdicts
    assert verdict.law == "surrogate"
    assert "no gradient for `weight` and `bias`" in verdict.finding.message


def test_a_number_that_backward_changes_on_ctx_is_told_from_noise():
    class Counts(KeepsTwice):
        @staticmethod
        def backward(ctx, y_bar):
            ctx.factor = 2 * getattr(ctx, "factor", 0.5)
            return y_bar * ctx.kept * ctx.factor

    said = finding_of(Counts, "(randn(4),)", "retained_graph").likely
    assert said == "the same over a new graph: backward changes what it finds on ctx"


class Overflows(Function):
    """A logistic function whose gradient overflows in float32 alone."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sigmoid()

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        e = (-x).exp()
        return y_bar * e / (1 + e).square()  # inf / inf


def test_the_operation_that_makes_nan_in_float32_is_named_with_its_line():
    said = finding_of(Overflows, "(tensor([-100.0, 1.0]),)", "precision")
    assert "is NaN in float32 in 1 of 2 elements" in said.message
    assert "makes NaN first: aten.div, test_audit_eighth_round.py:" in said.likely


class NeedsAll(Function):
    """Refuses a call in which the bias is frozen; its gradient is half as large."""

    @staticmethod
    def forward(ctx, x, bias):
        ctx.save_for_backward(x)
        return x.square() + bias

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        of_bias = y_bar.sum(0) if ctx.needs_input_grad[1] else None
        return 2 * x * y_bar, 0.5 * of_bias


def test_a_factor_is_named_where_a_frozen_argument_is_refused():
    said = finding_of(NeedsAll, "(randn(3, 4), randn(4))").likely
    assert said.startswith("the gradient of `bias` is off by the factor 0.5; right with `of_bias` in place of `0.5 * ")


class OfFour(Function):
    """The mean of as many numbers as there are, and a sum; the gradient of the mean is that of eight."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.mean(-1) + x.square().sum(-1)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar[:, None] * (2 * x + 1 / 8)


def test_a_repair_that_is_right_for_this_size_alone_is_not_said():
    reason = finding_of(OfFour, "(randn(3, 4),)").reason
    assert reason is None or reason.kind != "repair"
