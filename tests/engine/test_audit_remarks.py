"""What an audit says beside the verdicts: noise, state, shared memory, and arguments that no gradient reaches."""

import random

import numpy
import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.findings import findings
from gradspec.law import Status
from gradspec.laws import LAWS
from gradspec.laws.tensor._declared_draws import ANEW

NAMED = {law.name: law for law in LAWS}


class Dropped(Function):
    """Noise drawn in forward and kept."""

    draw = staticmethod(torch.rand_like)

    @classmethod
    def forward(cls, ctx, x):
        mask = cls.draw(x)
        ctx.save_for_backward(mask)
        return x * mask

    @classmethod
    def backward(cls, ctx, y_bar):
        (mask,) = ctx.saved_tensors
        return y_bar * mask


class DroppedByNumpy(Dropped):
    draw = staticmethod(lambda x: torch.tensor(numpy.random.rand(*x.shape), dtype=x.dtype))


class DrawsInBackward(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, y_bar):
        return 2 * y_bar * torch.rand_like(y_bar).round()


class Leaky(Function):
    """A slope that backward forgets, and a tensor that nobody reads."""

    @staticmethod
    def forward(ctx, x, slope, unused):
        ctx.save_for_backward(x, slope)
        return torch.where(x > 0, x, slope * x)

    @staticmethod
    def backward(ctx, y_bar):
        x, slope = ctx.saved_tensors
        return torch.where(x > 0, y_bar, slope * y_bar), None, torch.zeros(3, dtype=y_bar.dtype)


class WritesPastTheCounter(Function):
    @staticmethod
    def forward(ctx, x):
        x.data.mul_(2)
        return x + 0

    @staticmethod
    def backward(ctx, y_bar):
        return 2 * y_bar


class Root(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.abs().sqrt()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, y_bar):
        x, y = ctx.saved_tensors
        return y_bar * x.sign() / (2 * y)


class Zero(Function):
    @staticmethod
    def forward(ctx, x):
        return x.sign()

    @staticmethod
    def backward(ctx, y_bar):
        return torch.zeros_like(y_bar)


calls = [0]


def counts(x):
    calls[0] += 1
    return calls[0] * x


def judged(function, text, *laws):
    return audit(function, [text], laws=[NAMED[name] for name in laws], name="it")


def said(found, text):
    return [remark for remark in found.remarks if text in remark]


@pytest.mark.parametrize("function", [Dropped, DroppedByNumpy])
def test_noise_of_forward_is_held_still_and_the_laws_that_can_run_do(function):
    found = judged(function, "(randn(4, 30),)", "surrogate", "second_order", "adjoint", "func_grad", "retained_graph")

    assert found.report.failures == ()
    assert {v.law: v.status for v in found.report.verdicts} == {
        "surrogate": Status.HOLDS,
        "second_order": Status.HOLDS,
        "retained_graph": Status.HOLDS,
        "adjoint": Status.NOT_PROMISED,
        "func_grad": Status.NOT_PROMISED,
    }
    assert said(found, "the function draws noise")
    assert "    noise='replayed',  # calls are compared with the same draws\n" in found.proposal
    assert "TODO: give what it" not in found.proposal


def test_what_torch_makes_of_the_form_is_said_of_a_function_that_draws_noise():
    found = judged(Dropped, "(randn(4, 30),)", "surrogate", "compile_grad")

    assert [v.law for v in found.report.verdicts] == ["surrogate"]
    assert said(found, "silently gives another result than in eager mode under `compile_grad`.")


def test_noise_drawn_in_backward_alone_is_found_and_breaks_nothing_else():
    found = judged(
        DrawsInBackward,
        "(randn(4, 30),)",
        "declared_draws",
        "retained_graph",
        "cotangent_linearity",
        "needs_input_grad",
    )

    assert {v.law for v in found.report.failures} == {"declared_draws"}
    assert said(found, "Backward draws noise: two backward passes through one graph differ.")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "name", "said"),
    [
        (torch.rand_like, "torch's generator of cpu", "and each backward pass"),
        (lambda t: torch.from_numpy(numpy.random.rand(*t.shape)), "numpy's generator", "which"),
        (lambda t: t * 0 + random.random(), "python's random", "which"),
    ],
)
def test_the_generator_that_backward_draws_from_is_named_and_is_the_cause_of_the_rest(draw, name, said):
    class AddsNoise(Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, y_bar):
            return 2 * y_bar + draw(y_bar)

    laws = ("declared_draws", "surrogate", "cotangent_linearity", "undefined_cotangent")
    report = judged(AddsNoise, "(randn(4, 30),)", *laws).report
    (found,) = findings(report)

    assert found.verdict.finding.got == name
    assert found.verdict.finding.message.startswith(f"backward draws from {name}, {said} ")
    assert sorted(found.follows) == ["cotangent_linearity", "surrogate", "undefined_cotangent"]


@pytest.mark.slow
def test_a_mask_that_backward_draws_for_itself_is_not_that_of_forward():
    class Redrawn(Function):
        @staticmethod
        def forward(ctx, x):
            return x * (torch.rand_like(x) > 0.5)

        @staticmethod
        def backward(ctx, y_bar):
            return y_bar * (torch.rand_like(y_bar) > 0.5)

    class Doubled(Function):
        @staticmethod
        def forward(ctx, x):
            return x * (torch.rand_like(x) > 0.5)

        @staticmethod
        def backward(ctx, y_bar):
            return 2 * y_bar * (torch.rand_like(y_bar) > 0.5)

    laws = ("surrogate", "declared_draws")
    (redrawn,), wrong = (findings(judged(f, "(randn(4, 30),)", *laws).report) for f in (Redrawn, Doubled))
    assert redrawn.verdict.finding.message == ANEW
    assert list(redrawn.follows) == ["surrogate"]
    assert {one.verdict.law: one.verdict.finding.message.partition(":")[0] for one in wrong} == {
        "declared_draws": "backward draws from torch's generator of cpu, "
        "and each backward pass of a call gives another gradient",
        "surrogate": "backward does not apply the derivative of what forward computes",
    }


@pytest.mark.parametrize("drawn", [0.0, 1.0])
def test_a_straight_through_estimator_is_asked_about_without_its_surrogate(drawn):
    class Rounded(Function):
        @staticmethod
        def forward(ctx, x):
            return torch.floor(x + drawn * torch.rand_like(x))

        @staticmethod
        def backward(ctx, y_bar):
            return y_bar

    (verdict,) = judged(Rounded, "(randn(4, 30),)", "surrogate").report.verdicts
    assert verdict.status is Status.QUESTION
    assert verdict.finding.message.startswith("Is the gradient of `x` meant? Forward is flat nearly everywhere")


def test_a_function_that_keeps_state_is_not_compared_with_itself():
    found = judged(counts, "(randn(2),)", "surrogate", "global_state", "retained_graph")

    assert {v.law: v.status for v in found.report.verdicts} == {
        "surrogate": Status.VACUOUS,
        "global_state": Status.HOLDS,
    }
    message = found.report.of(law="surrogate")[0].finding.message
    assert message.startswith("the gradient is not judged: the function keeps state")
    assert message.endswith("so do those of torch.utils.checkpoint, which runs forward again for backward")
    assert said(judged(counts, "(randn(2),)", "global_state"), "the function keeps state")


class EverySecond(Function):
    """Each second gradient of the process is twice as large."""

    calls = 0

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @classmethod
    def backward(cls, ctx, y_bar):
        (x,) = ctx.saved_tensors
        EverySecond.calls += 1
        return y_bar * x.cos() * (1 + EverySecond.calls % 2)


def test_a_gradient_that_moves_from_call_to_call_is_one_finding():
    (found,) = findings(audit(EverySecond, ["(randn(4, 3),)"], laws=[law for law in LAWS if law.cost == "ms"]).report)

    assert found.laws == ["surrogate"]
    assert found.verdict.finding.message.startswith("the gradients of two calls with the same arguments differ")


def test_arguments_that_no_gradient_reaches_or_nothing_depends_on_are_named():
    found = judged(Leaky, "(randn(2, 3), tensor(0.1), randn(3))", "surrogate", "retained_graph")

    (verdict,) = found.report.of(law="surrogate")
    assert verdict.status is Status.QUESTION
    assert "Backward returns no gradient for `slope`, and the output moves with it." in verdict.finding.message
    assert said(found, "The output does not depend on `unused`, by any value that was tried.")
    assert not said(found, "`x`")
    assert found.report.failures == ()  # nothing is vacuous for an argument whose gradient is zero everywhere


def test_a_threshold_is_no_ignored_argument():
    class Step(Leaky):
        @staticmethod
        def forward(ctx, x, threshold):
            ctx.save_for_backward(x)
            return (x > threshold).to(x.dtype)

        @staticmethod
        def backward(ctx, y_bar):
            return y_bar, None

    assert not said(judged(Step, "(randn(2, 3), tensor(0.1))", "retained_graph"), "`threshold`")


def test_a_write_past_the_version_counter_is_a_write_and_no_noise():
    found = judged(WritesPastTheCounter, "(randn(2, 3),)", "inputs_untouched")

    assert {v.law for v in found.report.failures} == {"inputs_untouched"}
    assert not said(found, "noise")


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x.view_as(x), "The output shares memory with `x`: a write to one changes the other."),
        (lambda x: x.sin().float(), "The output is float32 where the arguments are float64."),
        (lambda x: 3 * x, "The gradient of `x` is the same at all values that were tried"),
        (Root, "Where `x` is zero the value is finite, and its gradient is not."),
        (Zero, "The gradient of `x` is zero at all values that were tried."),
        (lambda x: x.where(x > 0, -torch.inf), "The output is infinite or NaN in places: what backward gives there"),
    ],
)
def test_what_plain_calls_show_is_said(function, text):
    assert said(judged(function, "(randn(2, 3),)", "retained_graph"), text)


def test_of_an_ordinary_function_nothing_is_said():
    assert judged(torch.sin, "(randn(2, 3),)", "retained_graph").remarks == ()
