"""`audit(..., reference=..., surrogate=...)`: the laws of a spec, without a spec."""

from __future__ import annotations

import re

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.law import Status
from gradspec.laws import LAWS

CHEAP = [law for law in LAWS if law.cost == "ms" and law.capability is None]
NAMED = {law.name: law for law in LAWS}
CALL = "(randn(4, 3), randn(3), 0.01)"


def plain(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class RMSNorm(Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        return plain(x, weight, eps)

    @staticmethod
    def backward(ctx, y_bar):
        x, weight = ctx.saved_tensors
        r = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + ctx.eps)
        n, h = x * r, y_bar * weight
        x_bar = r * (h - n * (h * n).mean(-1, keepdim=True)) if ctx.needs_input_grad[0] else None
        return x_bar, (y_bar * n).sum(0) if ctx.needs_input_grad[1] else None, None


class Twice(RMSNorm):
    @staticmethod
    def backward(ctx, y_bar):
        x_bar, weight_bar, _ = RMSNorm.backward(ctx, y_bar)
        return 2 * x_bar if x_bar is not None else None, weight_bar, None


class Lost(RMSNorm):
    @staticmethod
    def backward(ctx, y_bar):
        return RMSNorm.backward(ctx, y_bar)[0], None, None


class Shifted(RMSNorm):
    @staticmethod
    def forward(ctx, x, weight, eps):
        return RMSNorm.forward(ctx, x, weight, eps) + 0.001


class Round(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar


class Halved(Round):
    @staticmethod
    def backward(ctx, y_bar):
        return y_bar / 2


def soft(x):
    return x * 1


def raises(x):
    raise RuntimeError("no kernel")


def roots(found):
    """The broken laws that follow from no other one."""
    return {v.law for v in found.report.failures if not v.finding.follows}


def test_a_sound_function_holds_the_laws_that_need_a_spec():
    found = audit(RMSNorm, [CALL], laws=CHEAP, reference=plain)

    assert found.report.failures == ()
    assert {v.status for name in ("primal", "vjp") for v in found.report.of(law=name)} == {Status.HOLDS}


@pytest.mark.parametrize(
    ("function", "law", "words"),
    [(Twice, "vjp", "gradient of `x`"), (Lost, "vjp", "gradient of `weight`"), (Shifted, "primal", "value differs")],
)
def test_what_is_wrong_is_the_one_finding(function, law, words):
    found = audit(function, [CALL], laws=CHEAP, reference=plain)

    assert roots(found) == {law}
    assert words in found.report.of(law=law)[0].finding.message
    assert not any("meant so" in v.finding.likely for v in found.report.verdicts)
    assert not any("no gradient for" in remark for remark in found.remarks)


@pytest.mark.parametrize("references", [{"surrogate": soft}, {"reference": torch.round, "surrogate": soft}])
def test_a_gradient_that_is_meant_to_be_another_one_is_held_to_its_surrogate(references):
    sound, wrong = (audit(function, ["(randn(3),)"], laws=CHEAP, **references) for function in (Round, Halved))

    assert sound.report.failures == ()
    assert not sound.remarks
    assert roots(wrong) == {"vjp"}
    assert bool(sound.report.of(law="primal")) is ("reference" in references)


def test_without_the_surrogate_backward_must_be_the_derivative_of_the_reference():
    assert roots(audit(Round, ["(randn(3),)"], laws=CHEAP, reference=torch.round)) == {"vjp"}


def test_a_gradient_that_the_reference_does_not_have_is_found():
    found = audit(RMSNorm, [CALL], laws=CHEAP, reference=lambda x, w, eps: plain(x, w.detach(), eps))

    assert roots(found) == {"vjp"}
    assert "`weight`" in found.report.of(law="vjp")[0].finding.message


@pytest.mark.parametrize(
    ("said", "laws"), [({"wrt": ("x",)}, set()), ({"zero_gradient": ("weight",)}, set()), ({}, {"vjp"})]
)
def test_a_gradient_that_is_not_asked_for_may_be_missing(said, laws):
    assert roots(audit(Lost, [CALL], laws=CHEAP, reference=plain, **said)) == laws


def test_noise_of_forward_is_that_of_the_reference():
    found = audit(
        lambda x, p: torch.nn.functional.dropout(x, p),
        ["(randn(4, 5), 0.5)"],
        laws=[NAMED["primal"], NAMED["vjp"]],
        reference=lambda x, p: x * torch.empty_like(x).bernoulli_(1 - p) / (1 - p),
    )

    assert {v.status for v in found.report.verdicts} == {Status.HOLDS}


def test_a_module_is_held_to_a_function_of_its_inputs():
    layer = torch.nn.Linear(3, 2)
    weight, bias = layer.weight.detach().double(), layer.bias.detach().double()
    laws = [NAMED["primal"], NAMED["vjp"]]

    sound = audit(layer, ["(randn(4, 3),)"], laws=laws, reference=lambda x: x @ weight.T + bias)
    wrong = audit(layer, ["(randn(4, 3),)"], laws=laws, reference=lambda x: x @ weight.T)

    assert {v.status for v in sound.report.verdicts} == {Status.HOLDS}
    assert roots(wrong) == {"primal"}


@pytest.mark.parametrize(
    ("references", "error", "message"),
    [
        ({"reference": plain}, ValueError, "reference does not take the inputs of the function: missing a required"),
        ({"surrogate": lambda: None}, ValueError, "surrogate does not take the inputs of the function: too many"),
        ({"reference": Round}, ValueError, "reference is the function itself: give one in plain torch"),
        ({"surrogate": Round.apply}, ValueError, "surrogate is the function itself: give one in plain torch"),
        ({"reference": 3}, TypeError, "reference cannot be called: it is 3"),
        ({"surrogate": raises}, ValueError, "the surrogate raises RuntimeError: no kernel (case '(randn(3),)')"),
        ({"reference": lambda x: x.sum().item()}, ValueError, "the reference raises TypeError: the call returns float"),
    ],
)
def test_what_cannot_be_compared_with_is_refused_in_one_line(references, error, message):
    with pytest.raises(error, match=re.escape(message)) as caught:
        audit(Round, ["(randn(3),)"], laws=CHEAP, **references)
    assert "\n" not in str(caught.value)


def test_what_the_reference_cannot_do_is_said_of_the_reference():
    def sampled(x, grid):
        return torch.nn.functional.grid_sample(x, grid, align_corners=True)

    class Sampled(Function):
        @staticmethod
        def forward(ctx, x, grid):
            ctx.save_for_backward(x, grid)
            return sampled(x, grid)

        @staticmethod
        def backward(ctx, y_bar):
            with torch.enable_grad():
                leaves = [t.detach().requires_grad_() for t in ctx.saved_tensors]
                return torch.autograd.grad(sampled(*leaves), leaves, y_bar)

        @staticmethod
        def jvp(ctx, *tangents):
            raise NotImplementedError

    found = audit(Sampled, ["(randn(1, 1, 3, 3), rand(1, 2, 2, 2))"], laws=["jvp"], reference=sampled)
    (verdict,) = found.report.of(law="jvp")
    assert verdict.finding.message.startswith("the reference raised NotImplementedError")


class TopK(Function):
    @staticmethod
    def forward(ctx, x, k):
        top, index = x.topk(k, dim=-1)
        gate = top.softmax(-1)
        ctx.save_for_backward(gate, index)
        return torch.zeros_like(x).scatter(-1, index, gate)

    @staticmethod
    def backward(ctx, y_bar):
        gate, index = ctx.saved_tensors
        g = y_bar.gather(-1, index)
        return torch.zeros_like(y_bar).scatter(-1, index, gate * (g - (gate * g).sum(-1, keepdim=True))), None


def top_k(x, k):
    least = x.topk(k, dim=-1).values[..., -1:].detach()
    return x.masked_fill(x < least, float("-inf")).softmax(-1)


def test_a_reference_that_compares_with_a_number_that_it_stops_is_judged():
    found = audit(TopK, ["(randn(5, 6), 3)"], reference=top_k, laws=["surrogate", "vjp"])

    assert {str(v.status) for v in found.report.verdicts} == {"holds"}


class OfTheClass(Function):
    """Its forward is a classmethod, whose names torch does not see, and an option is left to its default."""

    @classmethod
    def forward(cls, ctx, x, scale=2.0):
        ctx.scale = scale
        return scale * x

    @classmethod
    def backward(cls, ctx, y_bar):
        return ctx.scale * y_bar, None


def test_a_forward_of_the_class_is_not_called_by_keyword_with_a_default_left_out():
    (verdict,) = audit(
        OfTheClass, ["(randn(3),)"], reference=lambda x, scale=2.0: scale * x, laws=["keyword_call"]
    ).report.verdicts

    assert verdict.status is Status.NOT_APPLICABLE
