"""The argument whose gradient is wrong is named, and not the rounding of one that is right."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

from gradspec import Case, audit
from gradspec.law import Status
from gradspec.laws import LAWS

SURROGATE = [law for law in LAWS if law.name == "surrogate"]


class MeanOfRows(Function):
    """Root mean squares in float32 whatever is given, with the mean over the rows where a weight needs the sum."""

    @staticmethod
    def forward(ctx, x, w):
        r = (x.float().square().mean(-1, keepdim=True) + 1e-6).rsqrt()
        ctx.save_for_backward(x, w, r)
        return (x.float() * r * w.float()).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        x, w, r = ctx.saved_tensors
        scaled, g_w = x.float() * r, g.float() * w.float()
        of_x = r * (g_w - scaled * (g_w * scaled).mean(-1, keepdim=True))
        return of_x.to(x.dtype), (g.float() * scaled).mean(0).to(w.dtype)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_the_wrong_gradient_is_named(seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(12, 16, generator=generator).sin() + 1
    case = Case(x.requires_grad_(), torch.ones(16).requires_grad_())
    (verdict,) = audit(MeanOfRows, [case], laws=SURROGATE, seed=seed).report.verdicts
    assert verdict.status is Status.BROKEN
    said = f"{verdict.finding.message} {verdict.finding.likely}"
    assert "gradient of `w`" in said
    assert "off by the factor 0.0833, which is `1 / x.shape[0]`" in said
