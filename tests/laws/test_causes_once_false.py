"""Causes that were false once, each beside the function of which it is true."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.autograd import Function

from gradspec import Accuracy, FunctionSpec, Supports, verify
from gradspec.law import Status
from gradspec_lab.specimens import DISEASED
from gradspec_lab.specimens.modules import Net

X = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def found(spec, law):
    """Return what a law finds, first, in a spec that breaks it."""
    verdicts = verify([spec], laws=[law], isolate=False).of(law=law)
    return next(v.finding for v in verdicts if v.status is Status.BROKEN)


class DividedByRows(Net):
    def forward(self, x):
        return self.out(self.features(x).mean((2, 3)) / len(x))


BATCH = DISEASED["batch_statistics_in_evaluation"].spec


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (BATCH, "it depends on the numbers of the other rows: beside copies of row 0 it is as alone"),
        (
            replace(BATCH, module=DividedByRows),
            "it depends on how many rows there are, not on their numbers: beside copies of row 0 it is the same",
        ),
    ],
    ids=["their numbers", "how many"],
)
def test_how_a_row_depends_on_the_others_is_said_and_not_its_digits(spec, said):
    assert found(spec, "batch_independence").likely == said


class ChecksOnACpu(Function):
    """The check is left to the device elsewhere; the read of backward waits there."""

    @staticmethod
    def forward(ctx, x):
        if x.device.type == "cpu" and not float(x.detach().abs().sum()) < 1e9:
            raise ValueError("too large")
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar * x.cos() if y_bar.sum().item() else torch.zeros_like(x)


def test_the_read_that_is_named_is_one_that_waits_elsewhere_too():
    message = found(
        FunctionSpec(ChecksOnACpu.apply, lambda x: x.sin(), cases=[(X,)], name="sine"), "no_host_read"
    ).message

    assert message.startswith("backward reads a value")
    assert "in backward)" in message


def test_state_that_moves_where_it_should_stay_is_said_to_move():
    likely = found(DISEASED["state_moved_before_the_end"].spec, "state_transition").likely

    assert likely == "it moves where it should stay as it was"


def test_of_an_operator_no_list_is_looked_for():
    cut = found(DISEASED["gradient_falls_through"].spec, "vjp").reason

    assert cut.kind == "cut"
    assert cut.words.startswith("the operator returns a tensor without a graph")


def chain(factor):
    """Return a double whose backward is a Function, the backward of which is another one; its own is off."""

    class Again(Function):
        @staticmethod
        def forward(ctx, v):
            return 2 * v

        @staticmethod
        def backward(ctx, w):
            return factor * 2 * w

    class Slope(Function):
        @staticmethod
        def forward(ctx, y_bar):
            return 2 * y_bar

        @staticmethod
        def backward(ctx, v):
            return Again.apply(v)

    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, y_bar):
            return Slope.apply(y_bar)

    supports = Supports.eager(double_backward=True)
    return FunctionSpec(Double.apply, lambda x: 2 * x, cases=[(X,)], name="double", supports=supports)


def test_a_function_within_the_backward_of_another_one_is_not_said_to_have_a_wrong_gradient_of_its_own():
    finding = found(chain(2), "second_order")

    assert "third derivative" in finding.message
    assert "a derivative of the backward of another Function in the graph, `Slope`, is off" in finding.likely


def test_the_chain_is_right_without_the_factor():
    assert not verify([chain(1)], laws=["second_order"], isolate=False).failures


V = torch.tensor([[-1.5, 0.7, -0.3, 1.2], [0.4, -0.8, 2.1, -0.2]], dtype=torch.float64)


class Sparse(Function):
    """A spike whose gradient is 0 where its argument is at most a bound."""

    @staticmethod
    def forward(ctx, v, bound):
        ctx.save_for_backward(v)
        ctx.bound = bound
        return (v > 0).double()

    @staticmethod
    def backward(ctx, y_bar):
        (v,) = ctx.saved_tensors
        return y_bar / (v.abs() + 1) ** 2, None


def bounded(v, bound):
    return v.clamp(min=bound) / (1 + v.clamp(min=bound).abs())


def test_a_mask_at_another_bound_is_none_though_no_number_lies_between():
    spec = FunctionSpec(
        Sparse.apply, lambda v, bound: (v > 0).double(), surrogate=bounded, cases=[(V, 0.1), (V, -0.5)], name="spike"
    )

    assert "* (v > ctx.bound)" in found(spec, "vjp").likely


def order(x):
    return 13 if x.abs().sum() >= 1.5 else 3


class Sinh(Function):
    """The branch for small arguments lacks a term; the other one is right for these, too."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sinh(x)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        m = order(x)
        if m == 3:
            return (x + x**2 / 2) * y_bar
        return torch.cosh(x) * y_bar


def test_what_only_sends_a_call_through_another_branch_is_no_cause():
    spec = FunctionSpec(Sinh.apply, lambda x: torch.sinh(x), cases=[(0.1 * X[0],)], name="sinh")
    likely = found(spec, "vjp").likely

    assert "order" not in likely
    assert "if " not in likely


class Masked(Function):
    @staticmethod
    def forward(ctx, x, mask):
        ctx.save_for_backward(x, mask)
        return torch.where(mask, x, 0.0) ** 2

    @staticmethod
    def backward(ctx, y_bar):
        x, mask = ctx.saved_tensors
        of_x = 2 * x * y_bar
        return (of_x if mask is None else torch.where(mask, of_x, 0.0)), None


class SavedAgain(Masked):
    @staticmethod
    def forward(ctx, x, mask):
        y = Masked.forward(ctx, x, mask)
        ctx.save_for_backward(x, None)
        return y


def test_a_statement_that_is_one_too_many_is_left_out_and_not_replaced_by_a_name():
    spec = FunctionSpec(
        SavedAgain.apply,
        lambda x, mask: torch.where(mask, x, 0.0) ** 2,
        cases=[(X[0], torch.tensor([True, False, True]))],
        name="masked",
    )

    assert "right without `ctx.save_for_backward(x, None)`" in found(spec, "vjp").likely


class Solver(Function):
    """Of each gradient a little comes from the other output, as of a solver that stops."""

    @staticmethod
    def forward(ctx, a, b):
        return torch.stack([a, b])

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar[0] + 4e-8 * y_bar[1], y_bar[1] + 4e-8 * y_bar[0]


class SolverOfNothing(Solver):
    @staticmethod
    def backward(ctx, y_bar):
        return y_bar[0] * float("nan"), y_bar[1]


def solved(rtol, function=Solver):
    spec = FunctionSpec(
        function.apply,
        lambda a, b: torch.stack([a, b]),
        cases=[(X[0], X[1])],
        name="solver",
        accuracy=Accuracy(rtol=rtol),
    )
    return verify([spec], laws=["vjp"], isolate=False).failures


def test_a_gradient_that_is_zero_for_one_cotangent_is_held_to_what_it_is_for_others():
    assert not solved(1e-5)
    assert solved(1e-10)
    assert solved(1e-5, SolverOfNothing)


def test_what_returns_no_tensor_breaks_one_law_from_which_the_others_follow():
    report = verify([DISEASED["returns_a_number"].spec], laws=["primal", "vjp", "raw_returns", "export"], isolate=False)

    assert not [v for v in report.verdicts if v.status is Status.ERROR]
    assert {v.finding.follows for v in report.of(law="vjp") + report.of(law="export")} == {"primal"}


class SpikeInFloat32(Function):
    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return (v > 0).float()

    @staticmethod
    def backward(ctx, y_bar):
        (v,) = ctx.saved_tensors
        return y_bar * (v.abs() < 1).float() / 0.7


def test_a_gradient_that_a_spec_declares_is_linear_up_to_what_a_float32_output_rounds():
    spec = FunctionSpec(
        SpikeInFloat32.apply,
        lambda v: (v > 0).float(),
        gradient=lambda inputs, output, cotangent: {"v": cotangent * (inputs.v.abs() < 1).float() / 0.7},
        cases=[(V,), (V.abs() + 1,)],
        name="spike",
    )
    verdicts = verify([spec], laws=["cotangent_linearity"], isolate=False).verdicts

    assert [v.status for v in verdicts] == [Status.HOLDS, Status.HOLDS]


class WrongSlope(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, y_bar):
        return 3 * y_bar


@pytest.mark.parametrize(
    ("surrogate", "said"),
    [
        (
            lambda x: WrongSlope.apply(x),
            "the surrogate calls `WrongSlope`: that backward is held to differences here",
        ),
        (lambda x: 2 * x.data + 0 * x, ""),
    ],
    ids=["a Function", "data"],
)
def test_of_a_surrogate_only_a_function_that_it_calls_is_named(surrogate, said):
    spec = FunctionSpec(WrongSlope.apply, lambda x: 2 * x, surrogate=surrogate, cases=[(X,)], name="double")

    assert found(spec, "surrogate").likely == said


def test_a_loop_without_an_end_in_a_lower_precision_says_so():
    class Root(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.abs() + 1
            for _ in range(100_000):
                if (y * y - x.abs()).abs().max() <= 1e-9:
                    break
                y = (y + x.abs() / y) / 2
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, y_bar):
            x, y = ctx.saved_tensors
            return y_bar * x.sign() / (2 * y)

    spec = FunctionSpec(Root.apply, lambda x: x.abs().sqrt(), cases=[(X + 3 * X.sign(),)], accuracy=Accuracy(rtol=1e-8))

    assert "an iteration without an end" in found(spec, "precision").message
