"""A cache whose key leaves out an option, found in an audit without a reference: a process of its own has none."""

from __future__ import annotations

import os

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.findings import findings, judge

KNOWN: dict[tuple[int, bool], torch.Tensor] = {}
ALIKE: dict[int, torch.Tensor] = {}


def basis(size: int, is_scaled: bool) -> torch.Tensor:
    k = torch.arange(size, dtype=torch.float64)
    made = torch.cos(torch.pi / size * (k[:, None] + 0.5) * k)
    return made / size if is_scaled else made


class Keyed(Function):
    @staticmethod
    def forward(ctx, x, is_scaled):
        made = KNOWN.setdefault((x.shape[-1], is_scaled), basis(x.shape[-1], is_scaled))
        ctx.save_for_backward(made)
        return x @ made

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar @ ctx.saved_tensors[0].T, None


class KeyedBySize(Keyed):
    @staticmethod
    def forward(ctx, x, is_scaled):
        made = ALIKE.setdefault(x.shape[-1], basis(x.shape[-1], is_scaled))
        ctx.save_for_backward(made)
        return x @ made


class OfTheProcess(Function):
    """Calls agree, and those of another process are other ones."""

    @staticmethod
    def forward(ctx, x, is_scaled):
        return x * os.getpid()

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar * os.getpid(), None


CALLS = [f"(randn(3, 4, requires_grad=True), {flag})" for flag in (True, False)]


def test_the_call_that_another_one_decides_about_is_wrong_and_repeated_with_that():
    found = [one.found for one in judge(audit(KeyedBySize, CALLS, jobs=1).report).findings if one.fails]

    assert [one.verdict.law for one in found] == ["earlier_calls"]
    assert "its key leaves out an argument" in found[0].verdict.finding.likely
    assert found[0].verdict.finding.details["called before"] in CALLS


def test_one_call_is_asked_after_the_same_call_with_another_option():
    found = [one.found for one in judge(audit(KeyedBySize, CALLS[:1], jobs=1).report).findings if one.fails]

    assert [one.verdict.law for one in found] == ["earlier_calls"]
    assert found[0].verdict.finding.reason.evidence == {"argument": "is_scaled", "value": False}


def without_a_cache(x: torch.Tensor, is_scaled: bool) -> torch.Tensor:
    return x @ basis(x.shape[-1], is_scaled).to(x.dtype)


def test_what_is_wrong_behind_other_calls_alone_follows():
    laws = ["primal", "vjp", "earlier_calls", "compile", "compile_grad"]
    report = audit(KeyedBySize, CALLS, laws=laws, reference=without_a_cache).report
    assert {one.verdict.law for one in findings(report)} == {"earlier_calls"}


@pytest.mark.parametrize(("function", "calls"), [(Keyed, CALLS), (Keyed, CALLS[:1]), (OfTheProcess, CALLS[:1])])
def test_nothing_is_said_where_no_call_decides_about_another(function, calls):
    report = audit(function, calls, laws=["earlier_calls"], jobs=1).report

    assert not [one for one in judge(report).findings if one.fails]


class Leaky(Function):
    """Keeps on its class what backward needs: each call puts its own there."""

    kept: torch.Tensor

    @staticmethod
    def forward(ctx, h, u):
        Leaky.kept = torch.tanh(u)
        return h / 2 + Leaky.kept / 2

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar / 2, y_bar / 2 * (1 - Leaky.kept**2)


def test_what_the_next_call_puts_in_its_place_is_one_finding_in_whatever_order_the_calls_go_back():
    calls = ["(randn(4, 3), randn(4, 3))", "(randn(4, 3), rand(4, 3))"]
    (found,) = findings(audit(Leaky, calls, laws=["interleaved", "earlier_calls"]).report)

    assert (found.verdict.law, found.follows) == ("interleaved", ["earlier_calls"])
    assert "where the next call puts its own" in found.verdict.finding.likely
