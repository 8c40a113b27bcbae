"""The cause of a wrong gradient is looked for on a smaller call, and beside what float32 leaves on the way."""

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.law import Status


class Gate(Function):
    """silu(a) * b, computed in float32; what is kept is 1.02 times as large as it should be."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, 440.0 * b.float())
        return (a.float() * a.float().sigmoid() * b.float()).to(a.dtype)

    @staticmethod
    def backward(ctx, y_bar):
        a, packed = ctx.saved_tensors
        g, s, wide = y_bar.float(), a.float().sigmoid(), a.float()
        a_bar = g * (packed / 432.0) * s * (1 + wide * (1 - s))
        return a_bar.to(a.dtype), (g * wide * s).to(a.dtype)


def gate(a, b):
    return torch.nn.functional.silu(a) * b


class Rows(Function):
    """Sums of rows by tiles of two; what is left over is lost in the gradient of the weight."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, y_bar):
        x, w = ctx.saved_tensors
        w_bar = torch.zeros_like(w)
        for k in range(len(x) // 32):
            w_bar += (y_bar * x)[32 * k : 32 * k + 32].sum(0)
        return y_bar * w, w_bar


class Sampled(Function):
    """The mean of a picture that is drawn larger; backward draws it otherwise."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.nn.functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            leaf = x.detach().requires_grad_()
            y = torch.nn.functional.interpolate(leaf, scale_factor=2, mode="bilinear", align_corners=False)
        return torch.autograd.grad(y, leaf, y_bar)


class Normed(Function):
    """Complex rows over their size; the inner product of the backward lacks its real part."""

    @staticmethod
    def forward(ctx, z):
        size = z.abs().square().sum(-1, keepdim=True).sqrt()
        ctx.save_for_backward(z, size)
        return z / size

    @staticmethod
    def backward(ctx, y_bar):
        z, size = ctx.saved_tensors
        inner = (y_bar * z.conj()).sum(-1, keepdim=True)
        return y_bar / size - z * inner / size**3


def reason_of(function, call, law="surrogate", **how):
    (verdict,) = audit(function, [call], laws=[law], jobs=1, **how).report.of(law=law)

    assert verdict.status is Status.BROKEN
    return verdict.finding.reason


@pytest.mark.parametrize("how", [{}, {"law": "vjp", "reference": gate}])
def test_digits_of_float32_do_not_hide_a_factor(how):
    reason = reason_of(Gate, "(randn(3, 4), randn(3, 4))", **how)

    assert reason.kind == "factor" or "1.019" in str(reason.evidence)
    assert "1.0" in reason.words


def test_a_call_of_many_numbers_in_a_half_type_is_explained_by_a_smaller_one():
    reason = reason_of(Gate, "(randn(24, 32, dtype=bfloat16), randn(24, 32, dtype=bfloat16))")

    assert reason.kind == "factor"
    assert reason.words.startswith("gradient of `a`: ")
    assert "(shown by (randn(24, 5, dtype=bfloat16), " in reason.words


class SumForMean(Function):
    """Rows over their root mean square; the term through it has a sum in place of the mean."""

    @staticmethod
    def forward(ctx, x, w):
        size = x.square().mean(-1, keepdim=True).rsqrt()
        ctx.save_for_backward(x, w, size)
        return x * size * w

    @staticmethod
    def backward(ctx, y_bar):
        x, w, size = ctx.saved_tensors
        g = y_bar * w
        return g * size - x * size**3 * (g * x).sum(-1, keepdim=True), (y_bar * x * size).sum(0)


@pytest.mark.parametrize("reference", [lambda x, w: x * x.square().mean(-1, keepdim=True).rsqrt() * w, None])
def test_a_call_of_many_tensors_that_nobody_wrote_as_text_is_explained_by_a_smaller_one(reference):
    call = torch.randn(32, 20, dtype=torch.float64), torch.randn(20, dtype=torch.float64)
    laws = ["vjp"] if reference else ["surrogate"]
    (found,) = audit(SumForMean, [call], reference=reference, laws=laws).report.violations
    assert (
        "right with `(g * x).mean(-1, keepdim=True)` in place of `(g * x).sum(-1, keepdim=True)`"
        in found.finding.likely
    )
    assert ("(shown by (float64[5, 20], float64[20]))" in found.finding.likely) is (reference is None)


def test_what_a_smaller_call_does_not_show_is_not_said_of_it():
    assert "shown by" not in reason_of(Rows, "(randn(33, 16), randn(16))").words


@pytest.mark.parametrize(
    ("function", "call", "new"),
    [
        (Sampled, "(randn(1, 1, 3, 4),)", "align_corners=True"),
        (Normed, "(randn(3, 2, dtype=complex128),)", ".real"),
    ],
)
def test_a_flag_and_a_real_part_are_named(function, call, new):
    reason = reason_of(function, call)

    assert reason.kind == "repair"
    assert new in reason.words


class Table(Function):
    """Rows times a table; its gradient is the mean over the rows."""

    @staticmethod
    def forward(ctx, x, table):
        ctx.save_for_backward(x, table)
        return x * table

    @staticmethod
    def backward(ctx, y_bar):
        x, table = ctx.saved_tensors
        return y_bar * table, (y_bar * x).mean(0)


@pytest.mark.parametrize("how", [{}, {"law": "vjp", "reference": lambda x, table: x * table}])
def test_a_factor_is_said_with_the_line_that_makes_it(how):
    words = reason_of(Table, "(randn(5, 3), randn(3))", **how).words

    assert "off by the factor 0.2" in words
    assert "; right with `(y_bar * x).sum(0)` in place of `(y_bar * x).mean(0)`" in words
