"""A reference as people write it: a module of its own, in place, with outputs without a graph."""

import re

import pytest
import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from gradspec import audit
from gradspec.law import Status


class LowRank(Function):
    @staticmethod
    def forward(ctx, x, weight, a, b):
        ctx.save_for_backward(x, weight, a, b)
        return x @ weight.T + 2 * x @ a.T @ b.T

    @staticmethod
    def backward(ctx, y_bar):
        x, weight, a, b = ctx.saved_tensors
        return y_bar @ weight + 2 * y_bar @ b @ a, None, 2 * (y_bar @ b).T @ x, 2 * y_bar.T @ (x @ a.T)


class Adapted(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.arange(12.0).view(4, 3).sin(), requires_grad=False)
        self.a = nn.Parameter(torch.arange(6.0).view(2, 3).cos())
        self.b = nn.Parameter(torch.arange(8.0).view(4, 2).cos())

    def forward(self, x):
        return LowRank.apply(x, self.weight, self.a, self.b)


class Plain(Adapted):
    def forward(self, x):
        return x @ (self.weight + 2 * self.b @ self.a).T


class Merged(nn.Module):
    """The same map, with one weight of its own."""

    def __init__(self):
        super().__init__()
        self.merged = nn.Parameter(Plain()(torch.eye(3)).detach().T)

    def forward(self, x):
        return x @ self.merged.T


class HalfOfA(Adapted):
    """Its gradient of `a` is half of what it should be."""

    def forward(self, x):
        return LowRank.apply(x, self.weight, (self.a + self.a.detach()) / 2, self.b)


LAWS = ["primal", "vjp", "surrogate"]


@pytest.mark.parametrize("reference", [Plain, Merged])
def test_a_reference_with_weights_of_its_own_is_judged_in_double_precision_where_a_call_is(reference):
    report = audit(Adapted(), ["(randn(5, 3, dtype=float32),)"], reference=reference(), laws=LAWS).report

    assert {verdict.status for verdict in report.verdicts} == {Status.HOLDS}


def test_a_reference_that_is_built_alike_says_the_gradients_of_parameters():
    (failure, *_) = audit(HalfOfA(), ["(randn(5, 3, dtype=float32),)"], reference=Plain(), laws=LAWS).report.failures

    assert (failure.law, failure.finding.argument.partition(" (")[0]) == ("vjp", "gradient of `a`")


class LeakyInPlace(Function):
    @staticmethod
    def forward(ctx, x):
        x.copy_(torch.where(x > 0, x, x / 4))
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, y_bar):
        (y,) = ctx.saved_tensors
        return torch.where(y > 0, y_bar, y_bar / 4)


class LeakyUnmarked(LeakyInPlace):
    @staticmethod
    def forward(ctx, x):
        x.copy_(torch.where(x > 0, x, x / 4))
        ctx.save_for_backward(x)
        return x


@pytest.mark.parametrize(("function", "law"), [(LeakyInPlace, ""), (LeakyUnmarked, "inputs_untouched")])
def test_a_reference_may_write_in_place(function, law):
    laws = [*LAWS, "inputs_untouched"]
    report = audit(function, ["(randn(3),)"], reference=lambda x: nn.functional.leaky_relu_(x, 0.25), laws=laws).report

    assert [failure.law for failure in report.failures] == [law][: bool(law)]


class Centred(Function):
    @staticmethod
    def forward(ctx, x):
        mean = x.mean(0)
        ctx.mark_non_differentiable(mean)
        return x - mean, mean

    @staticmethod
    def backward(ctx, y_bar, _):
        return y_bar - y_bar.mean(0)


class CentredUnmarked(Centred):
    @staticmethod
    def forward(ctx, x):
        return x - x.mean(0), x.mean(0)


def centred(x):
    y = x - x.mean(0)
    with torch.no_grad():
        return y, x.mean(0)


def test_an_output_that_a_reference_stops_is_a_constant_where_the_function_marks_it_so():
    found, other = (
        audit(function, ["(randn(5, 3),)"], reference=centred, laws=["surrogate"]).report
        for function in (Centred, CentredUnmarked)
    )

    (holds,), (wrong,) = (report.of(law="surrogate") for report in (found, other))
    assert holds.status is Status.HOLDS
    assert wrong.finding.likely.startswith("the reference stops output 1, to which a graph of the function leads")


class TwiceOnce(Function):
    """Twice its argument, with three times the cotangent, and no second derivative."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    @once_differentiable
    def backward(ctx, y_bar):
        return 3 * y_bar


def test_that_a_wrong_gradient_has_no_second_derivative_is_promised_by_nobody():
    report = audit(TwiceOnce, ["(randn(3),)"], reference=lambda x: 2 * x, laws=["vjp", "second_order"]).report

    assert {v.law: v.status for v in report.verdicts} == {"vjp": Status.BROKEN, "second_order": Status.NOT_PROMISED}


class Scaled(nn.Module):
    """A function of a module that returns a gradient which nobody has asked for."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return Times.apply(x, self.scale)


class Times(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x, factor)
        return x * factor

    @staticmethod
    def backward(ctx, y_bar):
        x, factor = ctx.saved_tensors
        return y_bar * factor, (y_bar * x).sum(0)


def test_an_argument_of_a_function_that_a_module_calls_has_the_name_that_its_forward_gives_it():
    (verdict,) = audit(Scaled(), ["(randn(2, 3),)"], laws=["needs_input_grad"]).report.verdicts

    assert re.search(r"for argument `(x|factor)` of `Times` also where none is asked for", verdict.finding.message)
