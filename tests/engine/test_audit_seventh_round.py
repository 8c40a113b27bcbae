"""What a seventh round of functions by somebody who had not seen the engine found wrong in the answers of an audit."""

from __future__ import annotations

import os
import random
from collections import UserDict
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch.autograd import Function

from gradspec import CheckError, audit, check
from gradspec._finding import ALSO
from gradspec.findings import findings
from gradspec.law import Status
from squaring import squaring


def found(*args, **how):
    return findings(audit(*args, **how).report)


class FusedLoss(Function):
    """A gradient is assigned only where it is asked for, and saved in any case."""

    @staticmethod
    def forward(ctx, x, w):
        if x.requires_grad:
            x_bar = w.expand_as(x)
        if w.requires_grad:
            w_bar = x.sum(0)
        ctx.save_for_backward(x_bar, w_bar)
        return (x * w).sum()

    @staticmethod
    def backward(ctx, loss_bar):
        x_bar, w_bar = ctx.saved_tensors
        return loss_bar * x_bar, loss_bar * w_bar


@pytest.mark.parametrize(
    ("case", "where", "name"),
    [
        ("(randn(4, 3), randn(3))", "no argument requires a gradient, as in evaluation", "x_bar"),
        ("(randn(4, 3, requires_grad=True), randn(3))", "no argument but `x` requires a gradient", "w_bar"),
    ],
)
def test_what_raises_for_an_argument_that_is_not_trained_is_told_as_that(case, where, name):
    (one,) = found(FusedLoss, [case])

    finding = one.verdict.finding
    assert finding.message.startswith(f"forward raises where {where}, and not where `x` and `w` do: UnboundLocalError")
    assert f"'{name}'" in finding.message
    assert finding.details["place"].endswith("in forward")
    assert "only some ways through forward assign it" in finding.likely


def test_a_check_of_it_is_a_check_error_and_false():
    inputs = (torch.randn(4, 3, requires_grad=True), torch.randn(3, requires_grad=True))
    assert check(FusedLoss, inputs, raise_exception=False) is False
    with pytest.raises(CheckError, match="forward raises where no argument requires a gradient"):
        check(FusedLoss, inputs)


def test_what_raises_in_any_case_is_said_of_the_arguments():
    class Shaped(FusedLoss):
        @staticmethod
        def forward(ctx, x, w):
            raise ValueError("x has to have 7 columns")

    (one,) = found(Shaped, ["(randn(4, 3), randn(3))"])
    assert one.verdict.finding.message.startswith("a plain call raises ValueError: x has to have 7 columns")


@dataclass
class Weights:
    w: torch.Tensor


@pytest.mark.parametrize(
    ("made", "kind"),
    [(Weights, "Weights"), (lambda w: {1, w}, "set"), (lambda w: UserDict(w=w), "UserDict")],
    ids=["dataclass", "set", "mapping"],
)
def test_a_tensor_that_an_object_holds_is_not_passed_over(made, kind):
    w = torch.randn(3, requires_grad=True)
    with pytest.raises(ValueError, match=f"input 0 is a {kind}, in which no tensor is looked for"):
        check(lambda held, y: y.exp(), (made(w), torch.randn(3, dtype=torch.float64, requires_grad=True)))
    assert check(lambda held, y: y.exp(), (made(w.detach()), torch.randn(3, dtype=torch.float64, requires_grad=True)))


@pytest.mark.parametrize(
    ("seed", "error"), [(True, TypeError), (2**70, ValueError), (-1, ValueError), (0.5, TypeError)]
)
def test_a_seed_that_is_none_is_one_line(seed, error):
    with pytest.raises(error, match=r"^seed is .*: give a whole number"):
        check(torch.sin, torch.randn(3, requires_grad=True), seed=seed)


Reseeds = squaring(lambda: torch.manual_seed(0))
ReseedsPython = squaring(lambda: random.seed(0))


@pytest.mark.parametrize("function", [Reseeds, ReseedsPython])
def test_a_generator_that_is_seeded_as_the_check_seeds_it_is_seen(function):
    (one,) = found(function, ["(randn(3),)"], laws=["primal", "declared_draws"])

    assert one.verdict.law == "declared_draws"
    assert "forward seeds the generator" in one.verdict.finding.likely


SetsADtype = squaring(lambda: torch.set_default_dtype(torch.float16))
SetsAVariable = squaring(lambda: os.environ.update(GRADSPEC_TEST="1"))


@pytest.mark.parametrize("function", [SetsADtype, SetsAVariable, Reseeds])
def test_a_check_sees_what_a_function_changes_in_the_process_and_puts_it_back(function):
    x = torch.tensor([0.5, 1.5, -2.0], dtype=torch.float64, requires_grad=True)
    before = torch.get_rng_state()

    assert check(function, x, raise_exception=False) is False
    assert torch.get_default_dtype() is torch.float32
    assert "GRADSPEC_TEST" not in os.environ
    assert torch.equal(torch.get_rng_state(), before)


class Gather(Function):
    """Backward hands the cotangent of the first output on, and never reads that of the second."""

    @staticmethod
    def forward(ctx, x, ranks):
        return tuple(x.clone() for _ in range(ranks))

    @staticmethod
    def backward(ctx, *bars):
        return bars[0].clone(), None


def test_an_output_that_is_handed_on_and_whose_cotangent_is_ignored_is_no_question():
    (one,) = [one for one in found(Gather, ["(randn(2, 3), 2)"]) if one.verdict.law == "surrogate"]

    assert one.verdict.status is Status.BROKEN
    assert one.verdict.finding.likely.startswith("backward ignores the cotangent of output 1")


class Clipped(Function):
    """A quantiser to four steps from 0 on, whose gradient is masked at one end."""

    @staticmethod
    def forward(ctx, x, end):
        ctx.save_for_backward(x)
        ctx.end = end
        return (3 * x.clamp(0, 1)).round() / 3

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        mask = {"below": x > 0, "above": x < 1, "both": (x > 0) & (x < 1), "neither": x == x}[ctx.end]
        return y_bar * mask, None


@pytest.mark.parametrize(
    ("masked", "said"),
    [
        ("below", "what was clipped above: its gradient"),
        ("above", "what was clipped below: its gradient"),
        ("neither", "what was clipped: its gradient"),
        ("both", ""),
    ],
)
def test_the_end_at_which_a_clip_is_not_masked_is_named(masked, said):
    case = f"(tensor([-1.2, -0.3, 0.4, 0.9, 1.7, 2.6]), {masked!r})"
    (one,) = [one for one in found(Clipped, [case]) if one.verdict.law == "surrogate"]

    assert one.verdict.status is Status.QUESTION
    assert ("backward does not mask" in one.verdict.finding.message) is bool(said)
    assert said in one.verdict.finding.message


class Product(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return (x * w).sin()

    @staticmethod
    def backward(ctx, y_bar):
        x, w = ctx.saved_tensors
        return y_bar * w * (x * w), y_bar * x * (x + w)


def test_an_audit_without_a_reference_names_the_other_gradients_that_are_wrong():
    (one,) = found(Product, ["(randn(3), randn(3))"], laws=["surrogate"])

    assert one.verdict.finding.details[ALSO] == "gradient of `w`"


class OfBfloat16(squaring(int)):
    @staticmethod
    def backward(ctx, y_bar):
        return (2 * ctx.saved_tensors[0] * y_bar).bfloat16().to(y_bar.dtype)


def test_a_narrow_type_is_said_once():
    (one,) = found(OfBfloat16, ["(randn(4, dtype=float32),)"], laws=["surrogate"])

    assert one.verdict.finding.likely.startswith("every number of it is a bfloat16"), one.verdict.finding.likely


class KeptOnTheClass(squaring(int)):
    kept: ClassVar = []

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = x * x
        KeptOnTheClass.kept.append(y)
        return y


class KeptOnItself(squaring(int)):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.y = x * x
        return ctx.y


@pytest.mark.parametrize(
    ("function", "likely"),
    [(KeptOnTheClass, "a class, a list, a cache or a global"), (KeptOnItself, "the output sits on ctx")],
)
def test_what_holds_an_output_is_told_from_a_cycle(function, likely):
    verdicts = audit(function, ["(randn(3),)"], laws=["primal", "surrogate", "freed"]).report.verdicts
    (freed,) = [v for v in verdicts if v.law == "freed"]

    assert freed.finding.likely.startswith(likely)


def test_what_a_reference_cannot_do_is_no_silent_limit_of_torch():
    told = audit(lambda x: x * x, ["(randn(3),)"], laws=["primal", "vjp", "jvp"], reference=squaring(int).apply)

    (jvp,) = [v for v in told.report.verdicts if v.law == "jvp"]
    assert jvp.status is Status.NOT_PROMISED
    assert not any("A limit of torch" in one for one in told.remarks)


class LosesBoth(Function):
    """Of an output that no loss uses it drops what comes from the other one, too."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        ctx.set_materialize_grads(False)
        return x * w, x + w

    @staticmethod
    def backward(ctx, of_product, of_sum):
        if of_product is None or of_sum is None:
            return None, None
        x, w = ctx.saved_tensors
        return w * of_product + of_sum, x * of_product + of_sum


def test_what_the_function_does_to_a_compiled_gradient_is_no_limit_of_torch():
    laws = ["primal", "surrogate", "undefined_cotangent", "compile_jvp", "export"]
    told = audit(LosesBoth, ["(randn(3), randn(3))"], laws=laws)
    assert [verdict.law for verdict in told.report.violations] == ["undefined_cotangent"]
    assert {v.law for v in told.report.verdicts if v.status is Status.NOT_PROMISED} >= {"compile_jvp"}
    assert not any("A limit of torch" in one for one in told.remarks)


class WritesOverItsArgument(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        x.data.copy_(x.exp())
        return y_bar * x


class AddsAnOffset(squaring(int)):
    @staticmethod
    def backward(ctx, y_bar):
        return 2 * ctx.saved_tensors[0] * y_bar + 0.1


@pytest.mark.parametrize(
    ("function", "root", "follower"),
    [
        (WritesOverItsArgument, "inputs_untouched", "retained_graph"),
        (AddsAnOffset, "surrogate", "undefined_cotangent"),
    ],
)
def test_what_one_line_breaks_is_one_finding(function, root, follower):
    told = [one for one in found(function, ["(randn(3),)"]) if one.verdict.status is Status.BROKEN]

    assert told[0].verdict.law == root
    assert follower in told[0].follows
    assert follower not in [one.verdict.law for one in told]


def test_a_default_dtype_that_is_left_behind_is_no_draw():
    setting = squaring(lambda: torch.set_default_dtype(torch.float64))
    verdicts = audit(setting, ["(randn(3),)"], laws=["declared_draws", "global_state"]).report.verdicts

    assert {v.law: str(v.status) for v in verdicts} == {"declared_draws": "holds", "global_state": "broken"}
