"""A hint is said where an experiment shows it, and not of what looks alike."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

from gradspec import FunctionSpec, verify
from gradspec.findings import findings
from gradspec.law import Rank
from gradspec.spec import Supports
from gradspec_lab.specimens import DISEASED

X = torch.tensor([[0.7, -1.3, 0.4], [1.9, 0.2, -0.8]], dtype=torch.float64)


class Slope(Function):
    """3 x^2 v, with a backward of its own, which `wrong` changes."""

    @staticmethod
    def forward(ctx, x, v, wrong):
        ctx.save_for_backward(x, v)
        ctx.wrong = wrong
        return 3 * x**2 * v

    @staticmethod
    def backward(ctx, g):
        x, v = ctx.saved_tensors
        return *ctx.wrong(6 * x * v * g, 3 * x**2 * g), None


def cube(wrong):
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, v):
            (x,) = ctx.saved_tensors
            return Slope.apply(x, v, wrong)

    return Cube.apply


def of(backward):
    """Return x^3 with a backward of (ctx, x, v)."""

    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.passes = 0
            return x**3

        @staticmethod
        def backward(ctx, v):
            (x,) = ctx.saved_tensors
            ctx.passes += 1
            return backward(ctx, x, v)

    return Cube.apply


def first(function, law, *, surrogate=None):
    spec = FunctionSpec(
        name="cube",
        function=function,
        primal=lambda x: x**3,
        surrogate=surrogate or (lambda x: x**3),
        wrt=("x",),
        cases=lambda make: [(X,)],
        supports=Supports(double_backward=True),
    )
    report = verify([spec], laws=[law])
    return next(one.verdict.finding for one in findings(report) if one.verdict.law == law)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda x, v: (-x, -v), "the gradient of another Function in the graph, `Slope`, is off by the factor -1"),
        (
            lambda x, v: (0.5 * x, 0.5 * v),
            "the gradient of another Function in the graph, `Slope`, is off by the factor 0.5",
        ),
        (lambda x, v: (None, None), "another Function in the graph, `Slope`, returns a gradient of None or zeros"),
        (lambda x, v: (x.detach().clamp(-1, 1), v), ""),
    ],
)
def test_a_function_that_backward_calls_is_named_where_its_gradient_alone_is_wrong(wrong, said):
    found = first(cube(wrong), "second_order")

    assert found.likely.startswith(said)
    assert bool(found.likely) == bool(said)


def test_a_cut_is_named_where_the_derivative_is_right_without_it():
    cut = first(of(lambda ctx, x, v: 3 * x.data * x * v), "second_order")

    assert cut.likely == "right once .data, detach() and no_grad() are left out of backward, where they cut the graph"


def test_a_function_with_a_gradient_of_zero_is_not_blamed_for_a_cut():
    class Sign(Function):
        @staticmethod
        def forward(ctx, v):
            return v.sign()

        @staticmethod
        def backward(ctx, g):
            return torch.zeros_like(g)

    found = first(of(lambda ctx, x, v: 3 * x.data * x * Sign.apply(v) * v.abs()), "second_order")

    assert "where they cut the graph" in found.likely


def test_ctx_is_named_where_the_second_pass_over_one_graph_differs_from_the_first():
    drifts = first(of(lambda ctx, x, v: 3 * x**2 * v * ctx.passes), "retained_graph")
    report = verify([DISEASED["divides_the_cotangent_in_place"].spec], laws=["retained_graph"])
    written = next(
        verdict.finding for verdict in report.verdicts if verdict.law == "retained_graph" and verdict.finding.is_failure
    )

    assert drifts.likely == "the same over a new graph: backward changes what it finds on ctx"
    assert "on ctx" not in written.likely


@pytest.mark.parametrize("limit", [1e-2, 1e-4])
def test_a_low_limit_of_the_cotangent_is_one(limit):
    found = first(of(lambda ctx, x, v: 3 * x**2 * v.clamp(-limit, limit)), "vjp")

    assert found.likely == "backward clips the cotangent: right for small ones"


def test_a_dimension_that_is_not_summed_is_named_and_one_too_many_is_not():
    broadcast = first(of(lambda ctx, x, v: (3 * x**2 * v).expand(4, 2, 3) / 4), "raw_returns")
    one_more = first(of(lambda ctx, x, v: (3 * x**2 * v).unsqueeze(0)), "raw_returns")

    assert broadcast.likely == "a broadcast dimension is not summed"
    assert one_more.likely == ""


def test_backward_is_not_blamed_for_a_surrogate_that_is_wrong():
    found = first(of(lambda ctx, x, v: 3 * x**2 * v), "vjp", surrogate=lambda x: x.data**2 * x)

    assert found.likely.startswith("the surrogate's own derivative is not its numerical one")


def test_a_backward_that_runs_is_not_dropped():
    spec = DISEASED["keeps_state_by_ctx"].spec
    (found,) = findings(verify([spec], laws=["compiled_autograd"]))

    assert found.verdict.law == "compiled_autograd"
    assert "dropped" not in found.verdict.finding.likely


def test_what_raises_behind_a_law_that_gave_no_verdict_is_no_wrong_result():
    spec = DISEASED["crashes_on_an_empty_batch"].spec
    found = {one.verdict.law: one for one in findings(verify([spec], laws=["primal", "vjp", "empty"]))}

    assert found["empty"].rank is Rank.REFUSED
    assert "follows from" not in found["empty"].verdict.finding.message


def tripled(x):
    """Return 3 x, and say so.

    Example:
        >>> tripled(torch.tensor(2.0))
        tensor(6.)
    """
    print("tripled")  # what a law finds
    return 3 * x


def test_an_example_that_fails_stands_behind_its_cause():
    primal = {"primal": lambda x: 3 * x, "cases": lambda make: [(make(3),)], "documented": (tripled,)}
    report = verify([FunctionSpec(name="tripled", function=tripled, **primal)], laws=["examples", "global_state"])

    assert [one.verdict.law for one in findings(report)] == ["global_state", "examples"]
