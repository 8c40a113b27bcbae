"""A mistake of a spec is told as that, and not as one of the function."""

import os
import sys

import pytest
import torch

from gradspec import Case, FunctionSpec, Supports, audit, verify
from gradspec._engine._child import available
from gradspec._registry._laws import select_laws
from gradspec.law import Status


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g


def square(x):
    return x * x


def interrupted(x):
    raise KeyboardInterrupt


def found(law, primal=square, surrogate=square):
    spec = FunctionSpec(
        name="square",
        function=Square.apply,
        primal=primal,
        surrogate=surrogate,
        wrt=("x",),
        cases=lambda make: iter([Case(name="three", args=(make(3),))]),
        supports=Supports.eager(),
    )
    (verdict,) = verify([spec], laws=select_laws((law,))).of(law=law)
    return verdict.finding


def test_a_call_that_raises_is_one_finding():
    def with_steps(x, steps=60):
        return x * x

    spec = FunctionSpec(Square.apply, with_steps, name="square", cases=lambda make: [(make(3),)])
    report = verify([spec], laws=select_laws(("primal", "vjp", "uninitialized_memory", "surrogate")))
    (primal,) = report.failures
    assert (primal.law, primal.status) == ("primal", Status.ERROR)
    assert "takes 2 positional arguments but 3 were given" in primal.finding.message


ENDS = {
    "ended the interpreter: os._exit(0)": lambda x: os._exit(0),
    "raised SystemExit: 0": lambda x: sys.exit(0),
    "raised KeyboardInterrupt": interrupted,
}


@pytest.mark.skipif(not available(), reason="no fork on this machine")
@pytest.mark.parametrize("said", ENDS)
def test_a_side_that_ends_the_process(said):
    of_surrogate, of_primal = found("vjp", surrogate=ENDS[said]), found("primal", primal=ENDS[said])

    assert (of_surrogate.status, of_surrogate.message) == (Status.ERROR, f"the surrogate of the spec {said}")
    assert (of_primal.status, of_primal.message) == (Status.ERROR, f"the primal of the spec {said}")


SURROGATES = {
    "the surrogate of the spec returns something else each time it is called with the same arguments": (
        lambda x: x * x + torch.randn(3) * x
    ),
    "output 0 of the primal of the spec has the shape (3,), that of the surrogate ()": lambda x: (x * x).sum(),
    "the primal of the spec has 1 output, the surrogate 2 outputs": lambda x: (x * x, x),
}


@pytest.mark.parametrize("said", SURROGATES)
def test_a_surrogate_that_cannot_be_one(said):
    finding = found("vjp", surrogate=SURROGATES[said])

    assert (finding.status, finding.message) == (Status.ERROR, said)


def test_a_primal_that_has_a_memory():
    calls = []
    finding = found("primal", primal=lambda x: x * x + len(calls) * (calls.append(x) is None))

    assert (finding.status, finding.message[:44]) == (Status.ERROR, "the primal of the spec returns something els")


def test_a_primal_that_draws_where_the_function_draws_nothing():
    finding = found("primal", primal=lambda x: x * x + torch.randn(3))

    assert finding.status is Status.BROKEN
    assert finding.likely == "the primal of the spec draws random numbers, and the function draws none"


def test_that_a_wrong_surrogate_of_the_right_form_is_still_held_against_the_function():
    assert found("vjp", surrogate=lambda x: x**3).status is Status.BROKEN


def test_that_what_was_replaced_is_back():
    assert os._exit.__module__ == "posix" if os.name == "posix" else "nt"


def halved(x):
    """Return the square, found by halving an interval: right to the last digit, and autograd sees comparisons."""
    low, high = torch.zeros_like(x), torch.full_like(x, 64.0)
    for _ in range(80):
        middle = (low + high) / 2
        is_below = middle.sqrt() < x.abs()
        low, high = torch.where(is_below, middle, low), torch.where(is_below, high, middle)
    return (low + high) / 2


def in_numpy(x):
    return torch.from_numpy(x.detach().numpy() ** 2)


@pytest.mark.parametrize("reference", [halved, in_numpy])
def test_a_reference_that_moves_and_that_autograd_does_not_see_is_a_fault_of_the_spec(reference):
    for finding in (
        found("vjp", primal=reference, surrogate=reference),
        audit(Square, ["(randn(3),)"], reference=reference, laws=["vjp"]).report.verdicts[-1].finding,
    ):
        assert finding.is_fault
        assert "moves with `x`, and autograd sees no derivative of it" in finding.message


class Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return (x > 0).to(x)

    @staticmethod
    def backward(ctx, g):
        return g.clone()


@pytest.mark.parametrize(
    ("function", "reference"),
    [(Step, lambda x: (x > 0).to(x)), (Square, lambda x: (x * x).detach())],
    ids=["constant", "cut by name"],
)
def test_a_reference_without_a_graph_that_says_zero_is_none(function, reference):
    report = audit(function, ["(randn(3),)"], reference=reference, laws=["primal", "vjp"]).report

    (verdict,) = report.of(law="vjp")
    assert verdict.status is Status.BROKEN
    assert "no gradient is expected: where one is meant, give its surrogate" in verdict.finding.likely
