"""What a call leaves on its arguments, what it stops by name, and what it makes for itself; causes shown by chance."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.autograd import Function

from gradspec import audit
from gradspec.findings import judge
from gradspec.law import Rank, Status

LINES = Path(__file__).read_text(encoding="utf-8").splitlines()


def line_of(text):
    return next(number for number, line in enumerate(LINES, 1) if text in line)


def hooked(x, *, on_a_view):
    y = x.view_as(x) if on_a_view else x
    if y.requires_grad:
        y.register_hook(lambda x_bar: x_bar / 2)
    return y.tanh()


def on_a_view(x):
    return hooked(x, on_a_view=True)


def on_its_argument(x):
    return hooked(x, on_a_view=False)


def only_looks(x):
    if x.requires_grad:
        x.register_hook(lambda x_bar: None)
    return x.tanh()


@pytest.mark.parametrize(
    ("function", "slope", "found"),
    [(on_a_view, 0.5, ""), (on_its_argument, 0.5, "inputs_untouched"), (only_looks, 1, "")],
)
def test_a_hook_that_stays_on_an_argument_is_one_finding(function, slope, found):
    laws = ["vjp", "inputs_untouched", "earlier_calls", "checkpoint"]
    report = audit(
        function, ["(randn(3),)"], reference=torch.tanh, surrogate=lambda x: slope * x.tanh(), laws=laws
    ).report

    failing = [one.found for one in judge(report).findings if one.fails]
    assert [one.verdict.law for one in failing] == ([found] if found else [])
    for one in failing:
        assert one.verdict.finding.likely.startswith("forward registers a hook on `x`, which stays there")
        assert {"earlier_calls", "checkpoint"} == set(one.follows)


class Normalised(nn.Module):
    def __init__(self, *, cut):
        super().__init__()
        self.weight, self.cut = nn.Parameter(torch.tensor(2.0, dtype=torch.float64)), cut

    def forward(self, x):
        size = x.detach().norm() if self.cut else x.norm()  # the cut
        with torch.no_grad():
            x.mean()  # which stops nothing
        return self.weight * x / size


@pytest.mark.parametrize("cut", [True, False])
def test_a_part_of_a_gradient_that_a_module_stops_is_asked_about_with_its_line(cut):
    found = audit(Normalised(cut=cut), ["(randn(3),)"], laws=["surrogate"])
    (verdict,) = found.report.verdicts

    assert verdict.status is (Status.QUESTION if cut else Status.HOLDS)
    if cut:
        where = f"detach() (test_hooks_and_cuts.py:{line_of('# the cut')})"
        assert verdict.finding.message.startswith(
            f"Is it meant that a part of the gradient of `x` is stopped by {where}?"
        )


def test_nothing_is_asked_where_a_reference_says_what_is_left():
    module = Normalised(cut=True)
    (verdict,) = audit(
        module, ["(randn(3),)"], reference=lambda x: module.weight * x / x.norm(), laws=["vjp"]
    ).report.verdicts
    assert verdict.status is Status.BROKEN
    assert verdict.finding.likely.startswith("right once detach() is left out")


class Penalty(nn.Module):
    """Differentiates at a point that it makes, as a gradient penalty does."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, 3, dtype=torch.float64))

    def forward(self, real, fake):
        between = (real + fake).detach().requires_grad_()
        with torch.enable_grad():
            value = (between @ self.weight).tanh().sum()
            (slope,) = torch.autograd.grad(value, between, create_graph=True)
        return (slope.norm(dim=1) - 1).square().mean()


class Hides(nn.Module):
    """Keeps a trained tensor that it does not register."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, dtype=torch.float64))
        self.hidden = [torch.ones(3, dtype=torch.float64, requires_grad=True)]

    def forward(self, real, fake):
        return (real + fake) * self.weight * self.hidden[0]


@pytest.mark.parametrize(
    ("module", "rank", "said"),
    [(Penalty(), Rank.WASTE, "differentiates by a tensor of its own"), (Hides(), Rank.WRONG, "not registered")],
)
def test_a_leaf_that_is_made_in_the_call_is_no_hidden_parameter(module, rank, said):
    found = audit(module, ["(randn(2, 3), randn(2, 3))"], laws=["needs_input_grad"])
    (verdict,) = found.report.verdicts
    assert verdict.finding.rank == rank
    assert said in verdict.finding.likely


def test_a_module_of_which_a_reference_leaves_nothing_to_differentiate_is_judged():
    own = Penalty()
    weight = own.weight.detach().clone().requires_grad_()

    def plain(real, fake):
        slope = (1 - ((real + fake).detach() @ weight).tanh().square())[:, None] * weight
        return (slope.norm(dim=1) - 1).square().mean()

    found = audit(own, ["(randn(2, 3), randn(2, 3))"], reference=plain, laws=["primal", "uninitialized_memory"])
    assert [one.status for one in found.report.verdicts] == [Status.HOLDS, Status.HOLDS]


class Gathers(Function):
    """Writes where it must add, so that torch's derivative of its backward is another one, too."""

    @staticmethod
    def forward(ctx, x, weight, index):
        ctx.save_for_backward(x, weight, index)
        return weight * x[index]

    @staticmethod
    def backward(ctx, y_bar):
        x, weight, index = ctx.saved_tensors
        x_bar = torch.zeros_like(x)
        x_bar[index] = weight * y_bar
        return x_bar, y_bar * x[index], None


class Cuts(Function):
    """Gives the right gradient, a part of it without its graph."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3 + x**2

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar * (3 * x.detach() ** 2 + 2 * x)


@pytest.mark.parametrize(
    ("function", "call", "likely"),
    [
        (Gathers, "(randn(3), randn(4), tensor([0, 1, 0, 2]))", ""),
        (Cuts, "(randn(3),)", "right once .data, detach() and no_grad() are left out of backward"),
    ],
)
def test_a_cut_in_backward_is_claimed_where_it_is_the_cause(function, call, likely):
    (verdict,) = audit(function, [call], laws=["second_order"]).report.verdicts
    assert verdict.status is Status.BROKEN
    assert verdict.finding.likely.startswith(likely)
    assert bool(verdict.finding.likely) == bool(likely)


class OneNumber(Function):
    """Of one number each wrong gradient is off by some factor."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp().sum()

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar * (x.exp() + (x - 0.3).sin().atan())


def test_one_number_shows_no_factor():
    (verdict,) = audit(OneNumber, ["(randn(()),)"], laws=["surrogate"]).report.verdicts
    assert verdict.status is Status.BROKEN
    assert "factor" not in verdict.finding.likely


class Clips(Function):
    """A clipped ratio, without the gradient of what is not clipped below 1: right wherever nothing is clipped."""

    @staticmethod
    def forward(ctx, new, old, gain, eps):
        ratio = (new - old).exp()
        ctx.save_for_backward(ratio, gain)
        ctx.eps = eps
        return torch.minimum(ratio * gain, ratio.clamp(1 - eps, 1 + eps) * gain)

    @staticmethod
    def backward(ctx, y_bar):
        ratio, gain = ctx.saved_tensors
        inside = (ratio > 1 - ctx.eps) & (ratio < 1 + ctx.eps)
        return y_bar * ratio * gain * inside, None, None, None


@pytest.mark.parametrize("seed", range(3))
def test_an_option_is_the_cause_only_where_it_is_so_for_larger_numbers_too(seed):
    call = "(randn(12, requires_grad=True), randn(12), randn(12), 0.2)"
    (verdict,) = audit(Clips, [call], laws=["surrogate"], seed=seed).report.verdicts
    assert verdict.status is Status.BROKEN
    assert "where `eps` is" not in verdict.finding.likely


class WritesToItsCotangent(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar.mul_(x.cos())


def test_a_write_to_the_cotangent_is_one_finding():
    laws = ["cotangents_untouched", "declared_writes", "surrogate", "cotangent_layout"]
    report = audit(WritesToItsCotangent, ["(randn(4, 3),)"], laws=laws).report
    (found,) = (one.found for one in judge(report).findings if one.fails)

    assert found.verdict.law == "cotangents_untouched"
    assert set(found.follows) == {"declared_writes", "cotangent_layout"}


class Forgets(Function):
    """Gives the wrong gradient of one argument, and none of another, which nobody marks."""

    @staticmethod
    def forward(ctx, x, step):
        ctx.save_for_backward(step)
        return x.sin() * step

    @staticmethod
    def backward(ctx, y_bar):
        (step,) = ctx.saved_tensors
        return y_bar * step, None


def test_what_may_get_no_gradient_is_no_part_of_a_wrong_one():
    found = audit(Forgets, ["(randn(3), randn(3))"], laws=["surrogate"])
    (verdict,) = found.report.verdicts

    assert verdict.status is Status.BROKEN
    assert "step" not in verdict.finding.message
    assert "The output changes with `step`, and backward returns no gradient for it." in found.remarks


class Half(Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar / 2


def wrong_beside_a_hook(x):
    y = Half.apply(x.sin())
    if y.requires_grad:
        y.register_hook(lambda y_bar: None)
    return y


def clipped_by_a_hook(x):
    y = x.sin()
    if y.requires_grad:
        y.register_hook(lambda y_bar: y_bar.clamp(-1, 1))
    return y


@pytest.mark.parametrize(
    ("function", "status"),
    [
        (on_a_view, {"surrogate": Status.QUESTION, "cotangent_linearity": Status.HOLDS}),
        (wrong_beside_a_hook, {"surrogate": Status.BROKEN, "cotangent_linearity": Status.HOLDS}),
        (clipped_by_a_hook, {"surrogate": Status.BROKEN, "cotangent_linearity": Status.BROKEN}),
    ],
)
def test_a_hook_that_changes_a_gradient_is_asked_about(function, status):
    report = audit(function, ["(randn(3),)"], laws=list(status)).report
    assert {one.law: one.status for one in report.verdicts} == status
    asked = (
        f"Is it meant that a hook changes the gradient (test_hooks_and_cuts.py:{line_of('lambda x_bar: x_bar / 2')})?"
    )
    assert status["surrogate"] is Status.BROKEN or report.of(law="surrogate")[0].finding.message.startswith(asked)
