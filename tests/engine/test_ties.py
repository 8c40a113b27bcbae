"""Where elements tie a backward chooses which of them gets the gradient; not how much they get together."""

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.law import Status


class Largest(Function):
    """The largest number of each row; each that is as large gets all of the gradient."""

    @staticmethod
    def forward(ctx, x):
        y = x.amax(-1, keepdim=True)
        ctx.save_for_backward(x == y)
        return y

    @classmethod
    def backward(cls, ctx, y_bar):
        return y_bar * cls.shares(ctx.saved_tensors[0]).to(y_bar.dtype)

    @staticmethod
    def shares(hit):
        return hit


class Shared(Largest):
    @staticmethod
    def shares(hit):
        return hit / hit.sum(-1, keepdim=True)


class First(Largest):
    @staticmethod
    def shares(hit):
        return hit & (hit.cumsum(-1) == 1)


class NoneOfThem(Largest):
    @staticmethod
    def shares(hit):
        return hit & (hit.sum(-1, keepdim=True) == 1)


class Larger(Function):
    """The larger one of two; where they are equal both get all of the gradient."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return torch.maximum(a, b)

    @staticmethod
    def backward(ctx, y_bar):
        a, b = ctx.saved_tensors
        return y_bar * (a >= b), y_bar * (b >= a)


class LargerOfOne(Larger):
    @staticmethod
    def backward(ctx, y_bar):
        a, b = ctx.saved_tensors
        return y_bar * (a >= b), y_bar * (b > a)


class Distance(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward((a - b).sign())
        return (a - b).abs()

    @staticmethod
    def backward(ctx, y_bar):
        (sign,) = ctx.saved_tensors
        return y_bar * sign, -y_bar * sign


class Clipped(Function):
    """Clips; at the bound the gradient passes."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(max=1.0)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar * (x <= 1.0)


ROWS = "(tensor([[1.0, 2.0, 2.0], [3.0, -1.0, 3.0], [0.5, 0.2, 0.1]]),)"
PAIR = "(tensor([1.0, 2.0, -0.5]), tensor([1.0, 0.5, 1.5]))"


def judged(function, call):
    (verdict,) = audit(function, [call], laws=["surrogate"], jobs=1).report.of(law="surrogate")
    return verdict


@pytest.mark.parametrize(("function", "call"), [(Largest, ROWS), (NoneOfThem, ROWS), (Larger, PAIR)])
def test_what_those_that_tie_get_together_is_asked(function, call):
    verdict = judged(function, call)

    assert verdict.status is Status.BROKEN
    assert verdict.finding.reason.kind == "ties"


@pytest.mark.parametrize(
    ("function", "call"),
    [
        (Shared, ROWS),
        (First, ROWS),
        (LargerOfOne, PAIR),
        (Distance, PAIR),
        (Clipped, "(tensor([1.0, 0.5, 1.0, 2.0]),)"),
        (lambda x: x.sort(-1).values * torch.arange(3.0, dtype=x.dtype), ROWS),
        (lambda x: x.median(-1).values, ROWS),
        (lambda x: (x - 2.0).abs() + x.amax(), ROWS),
    ],
)
def test_a_choice_among_those_that_tie_is_no_mistake(function, call):
    assert judged(function, call).status in (Status.HOLDS, Status.NOT_MEASURED)
