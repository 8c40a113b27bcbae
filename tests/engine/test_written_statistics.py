"""What forward writes to an argument: as the primal does, or where nothing reads what was there."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import Function
from torch.nn.functional import batch_norm

from gradspec import audit
from gradspec.findings import judge


class Normed(Function):
    """Batch normalisation of (N, C) that moves its statistics as torch does."""

    @staticmethod
    def forward(ctx, x, mean, var):
        n = len(x)
        now, spread = x.mean(0), x.var(0, unbiased=False)
        mean.mul_(0.9).add_(0.1 * now)
        var.mul_(0.9).add_(0.1 * spread * n / (n - 1))
        scale = (spread + 1e-5).rsqrt()
        z = (x - now) * scale
        ctx.save_for_backward(z, scale)
        return z

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, z_bar):
        z, scale = ctx.saved_tensors
        return (z_bar - z_bar.mean(0) - z * (z_bar * z).mean(0)) * scale, None, None


class Biased(Normed):
    @staticmethod
    def forward(ctx, x, mean, var):
        z = Normed.forward(ctx, x, mean, var.clone())
        var.mul_(0.9).add_(0.1 * x.var(0, unbiased=False))
        return z


class Scaled(Function):
    """By a scale that it moves, as an observer of a quantiser does."""

    @staticmethod
    def forward(ctx, x, scale):
        scale.mul_(0.9).add_(0.1 * x.abs().max())
        ctx.save_for_backward(scale.clone())
        return x / scale

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar / ctx.saved_tensors[0], None


class MasksItsMask(Function):
    """Calls agree, and the caller's mask is another one."""

    @staticmethod
    def forward(ctx, x, mask):
        mask.clamp_(0, 1)
        ctx.save_for_backward(mask.clone())
        return x * mask

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar * ctx.saved_tensors[0], None


def normed(x, mean, var):
    return batch_norm(x, mean, var, training=True)


def scaled(x, scale):
    scale.mul_(0.9).add_(0.1 * x.detach().abs().max())
    return x / scale.clone()


CALL = "(randn(5, 3, requires_grad=True), zeros(3), ones(3))"
NUMBER = "(randn(5, 3, requires_grad=True), tensor(2.0))"
MASK = "(randn(5, requires_grad=True), tensor([0.0, 2.0, 1.0, 3.0, 0.5]))"


def failing(function: Any, call: str, **how: Any) -> list[str]:
    """Return what fails in training, as the audit says it."""
    report = audit(function, [call], jobs=1, **how).report
    return [one.found.verdict.finding.message for one in judge(report).findings if one.fails]


@pytest.mark.parametrize(
    ("function", "call", "how"),
    [(Normed, CALL, {}), (Normed, CALL, {"reference": normed})],
    ids=["statistics", "as-the-reference"],
)
def test_a_write_that_is_part_of_what_is_computed_fails_nothing(function, call, how):
    assert failing(function, call, **how) == []


@pytest.mark.parametrize(
    ("function", "call", "how", "said"),
    [
        (Biased, CALL, {"reference": normed}, "forward writes other numbers to `var` than the primal does"),
        (Scaled, NUMBER, {}, "forward writes to `scale`: its values have changed"),
        (MasksItsMask, MASK, {}, "forward writes to `mask`: its values have changed"),
    ],
    ids=["other-numbers", "observer-alone", "idempotent"],
)
def test_any_other_write_is_a_finding(function, call, how, said):
    assert failing(function, call, **how)[0].startswith(said)


def test_an_observer_is_wrong_in_a_checkpointed_block_alone():
    (said,) = failing(Scaled, NUMBER, reference=scaled)
    assert said.startswith("gradient of `x` under checkpoint differs")


def test_a_statistic_that_moves_is_said_to_do_so():
    report = audit(Normed, [CALL], jobs=1).report
    (verdict,) = report.of(law="inputs_untouched")

    assert "running statistic" in verdict.finding.likely
    assert verdict.finding.got
