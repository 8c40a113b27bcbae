"""An audit: what it finds of a function of which nothing is known, and the spec that it proposes."""

import os
import re
import signal

import pytest
import torch
from torch.autograd import Function

from gradspec import Case, audit, verify
from gradspec.functions import GradFactor
from gradspec.law import Status
from gradspec.laws import LAWS


class Reversed(Function):
    """The gradient reversal that many packages publish."""

    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.alpha * grad, None


class Step(Function):
    """A spike in float32, whatever the input; its gradient is that of an arc tangent."""

    @staticmethod
    def forward(ctx, x, alpha):
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        return (x > 0).float()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return ctx.alpha / 2 / (1 + (torch.pi / 2 * ctx.alpha * x) ** 2) * grad, None


X = torch.tensor([[0.5, -1.25], [2.0, -3.5]], dtype=torch.float64)
CHEAP = [law for law in LAWS if law.cost != "compile"]


def broken(found):
    return {verdict.law for verdict in found.report.failures}


@pytest.mark.slow
def test_a_published_form_is_found_out():
    found = audit(Reversed, [(X, 0.5)])

    assert broken(found) == set()
    not_promised = {v.law for v in found.report.verdicts if v.status is Status.NOT_PROMISED}
    assert {"func_grad", "vmap", "adjoint", "compile_grad", "compile_jvp"} <= not_promised
    assert "silently gives another result than in eager mode under `compile_grad`, " in found.remarks[-1]
    (finding,) = (v.finding for v in found.report.of(law="surrogate"))
    assert finding.status is Status.QUESTION
    assert finding.message.startswith("Is the gradient of `x` meant? Forward hands on what it is given")
    assert "vjp" not in found.report.laws


def test_a_function_that_promises_everything_is_asked_about_its_gradient_alone():
    found = audit(GradFactor, [Case(name="half", args=(X, 0.5))])

    assert broken(found) == set()
    assert {v.law for v in found.report.verdicts if v.status is Status.QUESTION} == {"surrogate"}
    assert {v.law for v in found.report.verdicts if v.status is Status.NOT_PROMISED} == set()


@pytest.mark.parametrize(
    ("function", "primal", "surrogate"),
    [
        (Reversed, "x", "-alpha * x"),
        (Step, "(x > 0).float()", "((torch.pi / 2 * alpha * x).atan() / torch.pi).float()"),
        (torch.sign, "x1.sign()", None),
    ],
)
def test_the_proposal_names_forms_that_agree_with_what_was_measured(function, primal, surrogate):
    case = (X,) if function is torch.sign else (X, 2.0)
    proposal = audit(function, [case], laws=CHEAP).proposal

    assert f"primal=lambda {'x1' if case == (X,) else 'x, alpha'}: {primal},  # agrees with every case" in proposal
    if surrogate:
        assert f"surrogate=lambda x, alpha: {surrogate},  # agrees with every case" in proposal


def test_the_proposal_can_be_pasted_and_checked():
    proposal = audit(Reversed, [(X, 0.5)], name="Reversed", laws=CHEAP).proposal
    scope = {"Reversed": Reversed}
    exec(proposal, scope)
    report = verify([scope["REVERSED"]], CHEAP)

    assert {v.status for v in report.of(law="vjp")} == {Status.HOLDS}
    assert {v.status for v in report.of(law="vmap")} == {Status.NOT_PROMISED}
    assert report.failures == ()


def test_a_form_that_cannot_be_named_is_left_to_the_author():
    proposal = audit(lambda x: x.cumsum(0).sin(), [(X,)], name="odd", laws=CHEAP).proposal

    assert "primal=stand_in(lambda x: odd(x)),  # TODO: what forward computes, in plain torch" in proposal


def test_noise_is_seen_and_what_cannot_be_judged_is_left_out():
    found = audit(lambda x: x * torch.rand(x.shape, dtype=x.dtype), [(X,)], name="noisy")

    assert "draws noise" in found.remarks[0]
    assert {"vmap", "compile", "export"} & set(found.report.laws) == set()
    assert broken(found) == set()


class MaskedGradient(Function):
    """The gradient of a projection as published: zero where the output is zero."""

    value = 0

    @classmethod
    def forward(cls, ctx, x):
        ctx.save_for_backward(x)
        return x.relu()

    @classmethod
    def backward(cls, ctx, grad):
        (x,) = ctx.saved_tensors
        grad = grad.clone()
        grad[x <= 0] = cls.value if cls.value is not None else 0 * grad.sum()
        return grad


class MaskedGradientOfATensor(MaskedGradient):
    value = None


@pytest.mark.parametrize(
    ("function", "status"), [(MaskedGradient, Status.HOLDS), (MaskedGradientOfATensor, Status.BROKEN)]
)
def test_a_number_put_under_a_mask_is_no_read_and_a_tensor_is(function, status):
    # Torch makes a masked fill of the first; for the second it counts the mask, and on a GPU the host waits.
    (verdict,) = audit(function, [(X,)], laws=[law for law in LAWS if law.name == "no_host_read"]).report.verdicts

    assert verdict.status is status


def test_no_graph_is_a_remark_if_the_output_moves_with_nothing():
    found = audit(lambda x: torch.ones_like(x), [(X,)], name="ones", laws=CHEAP)

    assert found.remarks[0] == "No gradient reaches any argument: the output is connected to no graph."


def raises(x):
    raise KeyError("no such table")


def kills(x):
    os.kill(os.getpid(), signal.SIGSEGV)


@pytest.mark.parametrize(("function", "message"), [(raises, "KeyError: 'no such table'"), (kills, "SIGSEGV")])
def test_a_function_that_cannot_be_called_is_one_finding(function, message):
    found = audit(function, [(X,)])

    assert [(verdict.law, verdict.status) for verdict in found.report.verdicts] == [("primal", Status.ERROR)]
    assert message in found.report.verdicts[0].finding.message
    assert found.proposal == ""


class WidensTheDefault(Reversed):
    @staticmethod
    def forward(ctx, x, alpha):
        torch.set_default_dtype(torch.float64)
        return Reversed.forward(ctx, x, alpha)


def test_what_a_function_does_to_the_process_stays_in_the_audit():
    found = audit(WidensTheDefault, [(X, 0.5)], laws=CHEAP)

    assert torch.get_default_dtype() is torch.float32
    assert "global_state" in broken(found)
    assert "surrogate=lambda x, alpha: -alpha * x," in found.proposal


@pytest.mark.parametrize(
    ("function", "cases", "error", "message"),
    [
        (3, [(X,)], TypeError, "takes a Function or a callable, got 3"),
        (Reversed, [], ValueError, "needs at least one case"),
        (Reversed, [(X,)], ValueError, "does not fit Reversed(x, alpha): missing a required argument: 'alpha'"),
        (Reversed, [Case(name="a", args=(X, 1.0))] * 2, ValueError, "two cases named 'a'"),
    ],
)
def test_what_cannot_be_audited_is_refused(function, cases, error, message):
    with pytest.raises(error, match=re.escape(message)):
        audit(function, cases)
