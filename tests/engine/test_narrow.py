"""A gradient that is made of the numbers of a narrower type is told to be so; one that looks alike is not."""

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.findings import judge
from gradspec.law import Rank, Status


class Norm(Function):
    """Sums the gradient of its weight row by row, in float64."""

    dtype = torch.float64

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @classmethod
    def backward(cls, ctx, y_bar):
        x, w = ctx.saved_tensors
        w_bar = torch.zeros(w.shape, dtype=cls.dtype)
        for row in y_bar * x:
            w_bar += row.to(cls.dtype)
        return y_bar * w, w_bar.to(w.dtype)


class InBfloat16(Norm):
    dtype = torch.bfloat16


class InFloat16(Norm):
    dtype = torch.float16


class InFloat32(Norm):
    dtype = torch.float32


class Doubled(Norm):
    """Wrong by a factor: its numbers are those of float64."""

    @classmethod
    def backward(cls, ctx, y_bar):
        x_bar, w_bar = super().backward(ctx, y_bar)
        return x_bar, 2 * w_bar


def likely(function, call, **how):
    return next(v.finding.likely for v in broken(function, call, **how))


def broken(function, call, **how):
    return [v for v in audit(function, [call], laws=["surrogate", "vjp"], **how).report.verdicts if v.finding.rank]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("function", "narrow"), [(InBfloat16, "bfloat16"), (InFloat16, "float16")])
def test_a_sum_in_a_narrow_type_is_named(function, narrow, dtype):
    said = likely(function, f"(randn(24, 3, dtype={dtype}), randn(3, dtype={dtype}))")

    assert f"every number of it is a {narrow}: it is summed, computed or kept in {narrow} on the way" in said
    assert "`w`" in said


def test_with_a_reference_too():
    said = likely(InFloat32, "(randn(24, 3), randn(3))", reference=lambda x, w: x * w)

    assert said.startswith("every number of it is a float32: it is summed, computed or kept")


@pytest.mark.parametrize("reference", [None, lambda x, w: x * w])
def test_what_float32_rounds_on_the_way_fails_nothing_at_either_door(reference):
    (one,) = broken(InFloat32, "(randn(24, 3), randn(3))", reference=reference)

    assert (one.finding.rank, one.finding.status) == (Rank.WASTE, Status.BROKEN)
    assert not judge(audit(InFloat32, ["(randn(24, 3), randn(3))"], laws=["surrogate"]).report).fails


@pytest.mark.parametrize("factor", [1 + 1e-6, 1 - 1e-6])
def test_what_is_off_by_more_than_float32_rounds_is_wrong(factor):
    off = type("Off", (Norm,), {"backward": classmethod(lambda cls, ctx, g: scaled(factor, ctx, g))})
    (one,) = broken(off, "(randn(24, 3), randn(3))", reference=lambda x, w: x * w)

    assert one.finding.rank == Rank.WRONG


def scaled(factor, ctx, y_bar):
    x_bar, w_bar = Norm.backward(ctx, y_bar)
    return x_bar, factor * w_bar


@pytest.mark.parametrize("reference", [None, lambda x, w: x * w])
def test_another_mistake_is_not_taken_for_it(reference):
    assert "every number" not in likely(Doubled, "(randn(24, 3), randn(3))", reference=reference)
