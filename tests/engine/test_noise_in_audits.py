"""An audit of a function that draws, inside or from what it is given."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

from engine.drawing import Anew, AnewAside, ByNumpy, Dropout, Given, Rewound
from gradspec import audit
from gradspec.findings import findings
from gradspec.laws import LAWS
from gradspec.laws.tensor._declared_draws import ANEW

#: Training, without child processes.
FEW = [law for law in LAWS if law.name in ("surrogate", "declared_draws", "retained_graph", "needs_input_grad")]


@pytest.mark.parametrize(
    ("function", "call"),
    [
        (Dropout, "(randn(4, 5), 0.4)"),
        (Rewound, "(randn(4, 5), 0.4)"),
        (Given, "(randn(4, 5), Generator().manual_seed(3))"),
    ],
)
def test_an_audit_of_a_sound_function_that_draws_says_so_in_one_remark(function, call):
    found = audit(function, [call], laws=FEW, jobs=1)

    assert found.report.failures == ()
    (remark,) = found.remarks
    assert remark.startswith("Two calls with the same arguments differ: the function draws noise. The calls compared")


@pytest.mark.parametrize("function", [Anew, AnewAside])
def test_an_audit_names_a_backward_that_draws_anew_first(function):
    found = audit(function, ["(randn(4, 5), 0.4)"], laws=FEW, jobs=1)
    first, *rest = findings(found.report)

    assert (first.verdict.law, first.verdict.finding.message) == ("declared_draws", ANEW)
    assert "surrogate" in first.follows
    assert not any(one.rank == "wrong" for one in rest)


class Jitter(Function):
    """Take the noise as an argument, and give it no gradient."""

    @staticmethod
    def forward(ctx, x, noise):
        ctx.save_for_backward(x)
        return x * x + noise

    @staticmethod
    def backward(ctx, y_bar):
        return 2 * ctx.saved_tensors[0] * y_bar, None


def test_an_argument_that_is_named_as_noise_gets_no_gradient_on_purpose():
    call = ["(randn(3), randn(3))"]
    asked, told = (audit(Jitter, call, laws=FEW, jobs=1, **named) for named in ({}, {"noise": ("noise",)}))

    assert any("noise" in remark for remark in (*asked.remarks, *(v.finding.message for v in asked.report.verdicts)))
    assert told.remarks == ()
    assert {str(v.status) for v in told.report.verdicts} == {"holds"}


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"noise": ("p",)}, "noise names 'p', and no call of Jitter has a floating-point tensor of this name"),
        ({"noise": ("noise",), "wrt": ("noise",)}, "`noise` is named by wrt and by noise: leave one of them out"),
    ],
)
def test_noise_that_is_no_argument_or_is_trained_is_refused(names, said):
    with pytest.raises(ValueError, match=said):
        audit(Jitter, ["(randn(3), randn(3))"], laws=FEW, jobs=1, **names)


class LeftBack(Dropout):
    """Wind the generator back to draw the mask of forward again, and leave it there."""

    @staticmethod
    def forward(ctx, x, p):
        ctx.state, ctx.p = torch.get_rng_state(), p
        return x * (torch.rand_like(x) > p)

    @staticmethod
    def backward(ctx, y_bar):
        torch.set_rng_state(ctx.state)
        return y_bar * (torch.rand_like(y_bar) > ctx.p), None


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (LeftBack, "backward leaves torch's generator of cpu where forward had it: what was drawn in between is drawn"),
        (ByNumpy, "forward draws from numpy's generator, which no checkpoint of torch rewinds"),
    ],
)
def test_an_audit_asks_what_a_draw_leaves_behind(function, said):
    (found,) = findings(audit(function, ["(randn(4, 5), 0.4)"], laws=FEW, jobs=1).report)

    assert found.verdict.law == "declared_draws"
    assert found.verdict.finding.message.startswith(said)
