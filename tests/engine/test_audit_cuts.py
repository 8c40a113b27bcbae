"""A part of the graph that is cut, and a saved tensor that is written to, are named with their line."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.autograd import Function

from gradspec import audit
from gradspec.findings import findings

LINES = Path(__file__).read_text(encoding="utf-8").splitlines()


def sinkhorn(scores, steps):
    for _ in range(steps):
        scores = scores - scores.logsumexp(1, keepdim=True)
        scores = scores - scores.logsumexp(0, keepdim=True)
    return scores.exp()


def cut_sinkhorn(scores, steps):
    for _ in range(steps):
        scores = scores - scores.detach().logsumexp(1, keepdim=True)
        scores = scores - scores.logsumexp(0, keepdim=True)
    return scores.exp()


class Recomputes(Function):
    """Runs the steps again in backward, and cuts some of them."""

    @staticmethod
    def forward(ctx, scores, steps):
        ctx.save_for_backward(scores)
        ctx.steps = steps
        return sinkhorn(scores, steps)

    @staticmethod
    def backward(ctx, y_bar):
        (scores,) = ctx.saved_tensors
        x = scores.clone().requires_grad_()
        with torch.enable_grad():
            (x_bar,) = torch.autograd.grad(cut_sinkhorn(x, ctx.steps), x, y_bar)
        return x_bar, None


def stops_twice(x, w):
    kept = x.detach()  # the first cut
    target = (x * w).detach()  # the second cut
    return (kept * w).sum() + (x - target).square().sum()


class Tied(nn.Module):
    """Takes the weight of its encoder again, without its graph."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(4, 3, dtype=torch.float64)

    def forward(self, x):
        return self.encode(x).tanh() @ self.encode.weight.data


class Overwrites(Function):
    """Writes to the sigmoid that it keeps."""

    @staticmethod
    def forward(ctx, gate, up):
        sig = torch.sigmoid(gate)
        ctx.save_for_backward(gate, up, sig)
        return sig.mul_(gate).mul(up)

    @staticmethod
    def backward(ctx, y_bar):
        gate, up, sig = ctx.saved_tensors
        silu = gate * sig
        return y_bar * up * (sig + silu * (1 - sig)), y_bar * silu


class Several(Recomputes):
    """Wrong in two ways: no one line mends it."""

    @staticmethod
    def backward(ctx, y_bar):
        x_bar, _ = Recomputes.backward(ctx, y_bar)
        return x_bar.exp(), None


def first(function, call, **how):
    return findings(audit(function, [call], laws=["vjp", "surrogate"], jobs=1, **how).report)[0].verdict.finding


def line_of(text):
    return next(number for number, line in enumerate(LINES, 1) if text in line)


@pytest.mark.parametrize("how", [{"reference": sinkhorn}, {}], ids=["with a reference", "by itself"])
def test_a_detach_in_a_recomputation_is_named_with_its_line(how):
    finding = first(Recomputes, "(randn(3, 4), 2)", **how)

    line = line_of("scores.detach()")
    assert finding.likely == f"right once detach() is left out (test_audit_cuts.py:{line})"
    assert finding.reason.evidence == {"by": "detach()", "line": line}


def test_what_the_checker_detaches_itself_is_no_line_of_the_function():
    lines = ", ".join(f"test_audit_cuts.py:{line_of(text)}" for text in ("# the first cut", "# the second cut"))
    assert first(stops_twice, "(randn(3), randn(3))").likely == f"right once detach() is left out ({lines})"


def test_data_in_a_module_is_named_with_its_line():
    finding = first(Tied(), "(randn(3, 4),)")

    assert finding.likely == f"right once .data is left out (test_audit_cuts.py:{line_of('weight.data')})"


def test_no_cut_is_named_that_does_not_mend_it():
    finding = first(Several, "(randn(3, 4), 2)", reference=sinkhorn)

    assert finding.reason is None or finding.reason.kind != "cut"


@pytest.mark.parametrize("how", [{"reference": lambda gate, up: gate * gate.sigmoid() * up}, {}])
def test_a_saved_tensor_that_is_written_to_is_what_it_was_before(how):
    finding = first(Overwrites, "(randn(3, 4), randn(3, 4))", **how)

    assert finding.likely.startswith("right with `ctx.save_for_backward(gate, up, sig.clone())` in place of")
