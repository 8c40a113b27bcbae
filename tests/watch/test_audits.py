"""What an audit says of the calls that were kept."""

from __future__ import annotations

import functools

import pytest
import torch

import gradspec
from gradspec.law import Scope, Status
from gradspec.render._remarks import remarks_of
from watch.watched import InItsDtype, InSingle, InSingleAndWrong, Runs, RunsAndLoses, RunsTwice


def audited(function, *args):
    with gradspec.watch() as seen:
        function.apply(*args).sum().backward()
    (row,) = seen.audit().rows
    return row


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_computes_in_float32_is_not_held_to_the_digits_of_a_float64(dtype):
    x = torch.linspace(-1, 1, 12).reshape(3, 4).to(dtype).requires_grad_()
    right = audited(InSingle, x)
    assert not right.asked
    assert not any("float64" in verdict.case for verdict in right.report.verdicts)


def test_what_computes_in_float32_is_found_wrong_in_it():
    row = audited(InSingleAndWrong, torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_())
    assert row.is_wrong
    assert [one.found.laws for one in row.asked] == [["surrogate"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "likely"),
    [
        (Runs, None),
        (RunsTwice, "the gradient of `parameters[0]` is off by the factor 2, and right for `x` and `parameters[1]`"),
        pytest.param(RunsAndLoses, "", marks=pytest.mark.slow),
    ],
)
def test_a_module_and_its_parameters_are_audited_as_they_belong_together(function, likely):
    layer = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh())
    row = audited(function, torch.randn(2, 3, requires_grad=True), layer, *layer.parameters())
    (first, *_) = row.report.of(law="surrogate")
    assert "in float64" in first.case
    if likely is None:
        assert not any(one.fails or one.is_question for one in row.asked)
        assert {verdict.status for verdict in row.report.of(law="surrogate")} == {Status.HOLDS}
    else:
        assert row.is_wrong
        assert first.status is Status.BROKEN
        assert "`parameters[0]`" in first.finding.message
        assert first.finding.likely.partition("; right with")[0] == likely


def test_what_goes_back_in_its_own_dtype_only_is_judged_in_it():
    row = audited(InItsDtype, torch.randn(2, 3, requires_grad=True), torch.nn.Linear(3, 3))
    assert {verdict.status for verdict in row.report.of(law="surrogate")} == {Status.HOLDS}
    assert not any("in float64" in verdict.case for verdict in row.report.verdicts)
    (said,) = [one for one in remarks_of(row.report, row.key) if one.startswith("In float64")]
    assert "the call is audited as the program makes it" in said


class Linear(torch.autograd.Function):
    """Saves its arguments as they are, whatever autocast makes of the product."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.T

    @staticmethod
    def backward(ctx, y_bar):
        x, weight = ctx.saved_tensors
        return y_bar @ weight, y_bar.T @ x


class CastLinear(Linear):
    forward = staticmethod(torch.amp.custom_fwd(Linear.forward, device_type="cpu"))
    backward = staticmethod(torch.amp.custom_bwd(Linear.backward, device_type="cpu"))


@pytest.mark.parametrize(("function", "is_wrong"), [(Linear, True), (CastLinear, False)])
def test_autocast_is_promised_where_the_program_uses_it(function, is_wrong):
    x, weight = (torch.randn(rows, 3).requires_grad_() for rows in (4, 2))
    with gradspec.watch() as seen, torch.autocast("cpu", torch.bfloat16):
        function.apply(x, weight)
    (row,) = seen.audit().rows

    assert row.is_wrong is is_wrong
    assert [one.found.verdict.law for one in row.asked if one.fails] == (["autocast"] if is_wrong else [])


class InBlocks(torch.autograd.Function):
    """Sums the squares of rows, in blocks of 64; backward forgets the last block if it is not full."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).sum(-1)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        x_bar = 2 * x * y_bar[:, None]
        full = len(x) // 64 * 64 or len(x)
        x_bar[full:] = 0
        return x_bar


class IgnoresOne(torch.autograd.Function):
    """Sums the logits of the classes, without those of class -1; backward does not leave these out."""

    @staticmethod
    def forward(ctx, logits, classes):
        ctx.save_for_backward(classes)
        ctx.shape = logits.shape
        kept = classes >= 0
        return (logits.gather(1, classes.clamp(min=0)[:, None])[:, 0] * kept).sum()

    @staticmethod
    def backward(ctx, y_bar):
        (classes,) = ctx.saved_tensors
        zeros = torch.zeros(ctx.shape, dtype=y_bar.dtype)
        return zeros.scatter(1, classes.clamp(min=0)[:, None], y_bar.expand(len(classes), 1)), None


def test_the_gradient_of_a_whole_call_is_compared_where_the_laws_are_tried_on_a_few_rows():
    whole = audited(InBlocks, torch.randn(200, 20, requires_grad=True))
    assert whole.is_wrong
    assert [verdict.case for verdict in whole.report.of(law="surrogate") if verdict.status is Status.BROKEN] == [
        "(float32[200, 20]) in float64"
    ]
    full = audited(InBlocks, torch.randn(192, 20, requires_grad=True))
    assert not full.is_wrong
    assert [verdict.case for verdict in full.report.of(law="surrogate")] == [
        "(float32[192, 20]), a few rows in float64",
        "(float32[192, 20]), a few rows",
        "(float32[192, 20]) in float64",
    ]


def test_the_few_rows_of_a_call_have_the_one_that_a_loss_ignores(monkeypatch):
    monkeypatch.setattr("gradspec._watch._audits.WHOLE", 0)
    classes = torch.arange(300) % 7
    classes[211] = -1
    row = audited(IgnoresOne, torch.randn(300, 8, requires_grad=True), classes)
    assert row.is_wrong


def test_named_scopes_are_asked_about_in_place_of_what_the_code_uses():
    class Squared(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x.detach() * grad

    wrong = {}
    for scopes in ((), [Scope.HIGHER]):
        with gradspec.watch(scopes=scopes) as seen:
            Squared.apply(torch.randn(3, requires_grad=True)).sum().backward()
        wrong[str(scopes)] = seen.audit().is_wrong
    assert list(wrong.values()) == [False, True]
    with pytest.raises(ValueError, match="did you mean 'higher'"):
        gradspec.watch(scopes="higer")


class HalfSeen(torch.autograd.Function):
    """Its forward is not a Python function."""

    forward = functools.partial(lambda ctx, x: 2 * x)

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad


def test_what_was_not_traced_is_not_said_to_be():
    row = audited(HalfSeen, torch.ones(2, requires_grad=True))
    assert (row.forwards, row.backwards) == (0, 1)
    assert row.why == "no call of its forward was seen"
