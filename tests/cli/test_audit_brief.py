"""What `gradspec audit` prints is short, and in the words of the call."""

import json

import pytest

OPS = """
import torch
from torch.autograd import Function

class Round(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad

class SumList(Function):
    @staticmethod
    def forward(ctx, b, *xs):
        ctx.count = len(xs)
        return b.detach() * sum(xs)

    @staticmethod
    def backward(ctx, grad):
        return grad.sum().reshape(()), *[grad] * ctx.count

def summed(weight, parts):
    return SumList.apply(weight.detach(), *parts)

class Single(Function):
    @staticmethod
    def forward(ctx, x):
        assert x.dtype == torch.float32
        return -x

    @staticmethod
    def backward(ctx, grad):
        return -grad
"""


@pytest.fixture
def audit(gradspec, folder):
    (folder / "ops.py").write_text(OPS)

    def run(target, case, *words):
        laws = [word for law in words if law[0] != "-" for word in ("--law", law)]
        return gradspec("audit", target, "--case", case, *laws, *[word for word in words if word[0] == "-"]).stdout

    return run


def test_the_table_shows_what_does_not_hold_and_the_number_of_the_rest(audit):
    call = ("ops:Round", "(randn(2, 3),)", "surrogate", "retained_graph", "layout", "empty")
    brief, whole = audit(*call), audit(*call, "--verbose")

    assert "2 laws hold, 1 not applicable: --verbose lists them" in brief
    assert "surrogate   ? question 1" in brief
    assert "✓" not in brief
    assert "✓ holds 1" in whole
    assert "--verbose lists them" not in whole


def test_the_report_itself_has_every_verdict(audit):
    found = json.loads(audit("ops:Round", "(randn(2, 3),)", "surrogate", "layout", "--format=json"))

    assert [verdict["law"] for verdict in found["verdicts"]] == ["surrogate", "layout"]


def test_arguments_are_named_as_in_the_call_and_equal_remarks_are_one(audit):
    direct = audit("ops:SumList", "(tensor(2.0), randn(3), randn(3))", "needs_input_grad")
    wrapped = audit("ops:summed", "(tensor(2.0), [randn(3), randn(3)])", "needs_input_grad", "surrogate")

    assert "The gradient of `b`, `xs[0]` and `xs[1]` is the same at all values that were tried" in direct
    assert "The gradient of `parts[0]` and `parts[1]` is the same at all values" in wrapped
    assert "backward computes a gradient for argument `b` of `SumList` also where none is asked for" in wrapped
    assert "xs_" not in direct
    assert "parts_" not in wrapped


def test_a_proposal_names_its_case_by_the_dtype_that_it_has(audit):
    said = audit("ops:Single", "(randn(3),)", "retained_graph")

    assert "yield read_case('(randn(3, dtype=float32))')" in said


def test_the_remark_on_transforms_names_no_law_that_is_none():
    from gradspec._audit._remarks import of_report
    from gradspec.law import Finding, Status, Verdict
    from gradspec.report import Report

    finding = Finding(status=Status.NOT_PROMISED, message="another result")
    verdicts = tuple(Verdict(spec="f", law=law, case="c", finding=finding) for law in ("adjoint", "export"))
    (said,) = of_report(Report(verdicts=verdicts, provenance={}, sheets={}, laws={}, sources={}))

    assert said.startswith("A limit of torch ")
    assert "another result than in eager mode under `export`." in said
