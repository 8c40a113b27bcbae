"""A second derivative is lost through what forward keeps, or cut in backward: the hint says which of the two."""

import pytest
import torch
from torch.autograd import Function

from gradspec import Case, FunctionSpec, Supports, audit, verify
from gradspec.explain._kept import CUT, KEPT
from gradspec.explain._second_order import PARTLY
from gradspec.laws import LAWS

CASE = "(randn(3, 4), randn(3, 4))"
SECOND = [law for law in LAWS if law.name in ("primal", "vjp", "second_order")]


class KeepsSlopes(Function):
    """The length of (x, y, 1): backward reads its slopes, which forward has computed."""

    @staticmethod
    def forward(ctx, x, y):
        r = (x * x + y * y + 1).sqrt()
        ctx.save_for_backward(x / r, y / r)
        return r

    @staticmethod
    def backward(ctx, v):
        p, q = ctx.saved_tensors
        return v * p, v * q


class KeepsOne(KeepsSlopes):
    """The same, where the arguments are saved beside a slope."""

    @staticmethod
    def forward(ctx, x, y):
        r = (x * x + y * y + 1).sqrt()
        ctx.save_for_backward(x, y, 1 / r)
        return r

    @staticmethod
    def backward(ctx, v):
        x, y, slope = ctx.saved_tensors
        return v * x * slope, v * y * slope


class CutInBackward(KeepsSlopes):
    """The same, where all is computed in backward, out of sight of autograd."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return (x * x + y * y + 1).sqrt()

    @staticmethod
    def backward(ctx, v):
        x, y = (t.detach() for t in ctx.saved_tensors)
        r = (x * x + y * y + 1).sqrt()
        return v * x / r, v * y / r


class CutBesideAMask(CutInBackward):
    """The same, where forward also keeps a constant, which nobody misses in a second derivative."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        ctx.mask = (x.abs() < 100).to(x.dtype)
        return (x * x + y * y + 1).sqrt()


class NoHistory(KeepsSlopes):
    """The slopes are kept, and the gradient is cut off too: to save the arguments alone would not mend it."""

    @staticmethod
    def backward(ctx, v):
        return tuple(t.detach() for t in KeepsSlopes.backward(ctx, v))


def length(x, y):
    return (x * x + y * y + 1).sqrt()


def of_an_audit(function):
    return audit(function.apply, [CASE], laws=SECOND[-1:]).report


def of_a_spec(function):
    def cases(make):
        yield Case(name="one", args=(make(3, 4), make(3, 4)))

    spec = FunctionSpec(
        name="length",
        function=function.apply,
        primal=length,
        surrogate=length,
        wrt=("x", "y"),
        cases=cases,
        supports=Supports.all(),
    )
    return verify([spec], SECOND, isolate=False)


@pytest.mark.parametrize("asked", [of_an_audit, of_a_spec])
@pytest.mark.parametrize("function", [KeepsSlopes, KeepsOne])
def test_what_forward_computes_and_keeps_is_named(asked, function):
    (verdict,) = (v for v in asked(function).verdicts if v.law == "second_order")

    assert verdict.finding.likely == KEPT.words


@pytest.mark.parametrize("asked", [of_an_audit, of_a_spec])
@pytest.mark.parametrize("function", [CutInBackward, CutBesideAMask, NoHistory])
def test_a_backward_that_is_cut_is_not_blamed_on_it(asked, function):
    (verdict,) = (v for v in asked(function).verdicts if v.law == "second_order")

    assert verdict.finding.likely in ((CUT.words,) if asked is of_an_audit else (CUT.words, PARTLY.words))


def test_what_is_kept_is_drawn_alike():
    """A mask that forward draws moves with the generator, and with no argument; an audit holds the generator still."""

    class Dropped(CutInBackward):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            ctx.mask = torch.rand_like(x)
            return length(x, y)

    (verdict,) = (v for v in of_an_audit(Dropped).verdicts if v.law == "second_order")

    assert verdict.finding.likely == CUT.words
