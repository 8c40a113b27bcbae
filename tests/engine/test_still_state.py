"""A module whose gradient holds still what forward writes to its buffers."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gradspec import audit
from gradspec.law import Status


class Normed(nn.Module):
    """Divide a matrix by its norm, which one step of the power method improves in each call."""

    def __init__(self, wrong=1.0):
        super().__init__()
        draw = torch.Generator().manual_seed(2)
        self.weight = nn.Parameter(torch.randn(3, 4, generator=draw, dtype=torch.float64))
        self.register_buffer("u", torch.randn(3, generator=draw, dtype=torch.float64))
        self.register_buffer("v", torch.zeros(4, dtype=torch.float64))
        self.wrong = wrong

    def forward(self, x):
        with torch.no_grad():
            nn.functional.normalize(self.weight.T @ self.u, dim=0, out=self.v)
            nn.functional.normalize(self.weight @ self.v, dim=0, out=self.u)
        return x @ _Off.apply(self.weight / (self.u.clone() @ self.weight @ self.v.clone()), self.wrong).T


class _Off(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, wrong):
        ctx.wrong = wrong
        return x.clone()

    @staticmethod
    def backward(ctx, y_bar):
        return ctx.wrong * y_bar, None


class Handed(nn.Module):
    """Write the output to a buffer, and return that: held still, it has the gradient of zero that backward gives."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, dtype=torch.float64))
        self.register_buffer("y", torch.zeros(5, 4, dtype=torch.float64))

    def forward(self, x):
        return _Written.apply(x.detach(), self.weight, self.y)


class _Written(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, y):
        ctx.save_for_backward(weight)
        y.copy_(2 * x * weight)
        return y.clone()

    @staticmethod
    def backward(ctx, y_bar):
        (weight,) = ctx.saved_tensors
        return 2 * y_bar * weight, torch.zeros_like(weight), None


def judged(module):
    (verdict,) = audit(module, ["(randn(5, 4),)"], laws=["surrogate"], jobs=1).report.verdicts
    return verdict


@pytest.mark.parametrize("kind", [Normed, lambda: nn.utils.spectral_norm(nn.Linear(4, 3)).double()])
def test_state_that_forward_writes_may_be_held_still(kind):
    torch.manual_seed(0)
    assert judged(kind()).status is Status.HOLDS


@pytest.mark.parametrize("module", [Normed(wrong=1.5), Handed()])
def test_a_wrong_gradient_beside_such_state_is_found(module):
    assert judged(module).status is Status.BROKEN
