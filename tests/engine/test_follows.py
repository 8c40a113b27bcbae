"""A finding follows from another one where that was tried: what stays wrong with the other one mended is its own."""

from __future__ import annotations

import pytest
from torch.autograd import Function

from gradspec import Case, FunctionSpec, Supports, verify
from gradspec.findings import findings
from gradspec.laws import LAWS

ASKED = [law for law in LAWS if law.name in ("primal", "vjp", "jvp", "adjoint", "layout", "checkpoint", "precision")]


def function(forward, backward, jvp=None):
    """Return a Function of one argument, whose backward takes the argument, the output and the cotangent."""

    class Made(Function):
        @staticmethod
        def forward(x):
            return forward(x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs, output)
            ctx.save_for_forward(*inputs, output)

    Made.backward = staticmethod(lambda ctx, v: backward(*ctx.saved_tensors, v))
    if jvp is not None:
        Made.jvp = staticmethod(lambda ctx, u: jvp(*ctx.saved_tensors, u))
    return Made.apply


def found(function, primal, **supports):
    spec = FunctionSpec(
        name="made",
        function=function,
        primal=primal,
        surrogate=primal,
        wrt=("x",),
        cases=lambda make: iter([Case(name="a", args=(make(3, 4),))]),
        supports=Supports.eager(**supports),
    )
    return {f.verdict.law: f for f in findings(verify([spec], ASKED, isolate=False))}


def test_a_doubled_gradient_beside_a_rounding_difference_is_a_finding_of_its_own():
    almost = function(lambda x: x.sin() * (1 + 3e-12), lambda x, y, v: 2 * v * x.cos())
    said = found(almost, lambda x: x.sin())

    assert set(said) == {"primal", "vjp"}
    assert said["vjp"].verdict.finding.likely == "every element is off by the factor 2"
    assert said["primal"].verdict.finding.likely == "every element is off by 3e-12 of itself"
    assert "precision" in said["vjp"].follows
    assert "precision" not in said["primal"].follows


@pytest.mark.parametrize("keep", ["saved", "on ctx"])
def test_a_gradient_made_of_a_wrong_output_follows_from_it(keep):
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = 1.5 * x.exp()
            ctx.kept = y
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, v):
            return v * (ctx.saved_tensors[0] if keep == "saved" else ctx.kept)

    said = found(Exp.apply, lambda x: x.exp())

    assert set(said) == {"primal"}
    assert "vjp" in said["primal"].follows


def test_a_gradient_that_torch_wrote_follows_from_forward():
    assert set(found(lambda x: (2 * x).sin(), lambda x: x.sin())) == {"primal"}
    assert set(found(lambda x: (2 * x.detach()).sin() + 0 * x, lambda x: x.sin())) == {"primal", "vjp"}


def test_forward_mode_that_does_not_fit_a_right_backward_does_not_follow_from_a_wrong_one():
    wrong = found(
        function(lambda x: x.sin(), lambda x, y, v: 2 * v * x.cos(), lambda x, y, u: u * x.cos()),
        lambda x: x.sin(),
        forward_mode=True,
    )
    both = found(
        function(lambda x: x.sin(), lambda x, y, v: 2 * v * x.cos(), lambda x, y, u: 3 * u * x.cos()),
        lambda x: x.sin(),
        forward_mode=True,
    )

    assert set(wrong) == {"vjp"}
    assert "adjoint" in wrong["vjp"].follows
    assert {"vjp", "jvp"} <= set(both)


def test_what_follows_keeps_its_own_numbers():
    spec = FunctionSpec(
        name="made",
        function=function(lambda x: x.sin(), lambda x, y, v: 2 * v * x.cos()),
        primal=lambda x: x.sin(),
        surrogate=lambda x: x.sin(),
        wrt=("x",),
        cases=lambda make: iter([Case(name="a", args=(make(3, 4),))]),
        supports=Supports.eager(),
    )
    (verdict,) = verify([spec], ASKED, isolate=False).of(law="checkpoint")

    assert verdict.finding.follows == "vjp"
    assert float(verdict.finding.got) == pytest.approx(2 * float(verdict.finding.expected))
    assert verdict.finding.index
