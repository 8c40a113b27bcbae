"""A function that a program only compiles is audited on calls with its sizes, and with drawn numbers."""

import pytest
import torch

import gradspec
from gradspec._watch._text import text
from watch.watched import Cubed, Wrong


class Logarithm(torch.autograd.Function):
    """Right, and defined above 0 only."""

    @staticmethod
    def forward(ctx, x, weight, which, powers):
        ctx.save_for_backward(x, weight, which)
        ctx.power = powers[0]
        return ctx.power * x.log() * weight[which]

    @staticmethod
    def backward(ctx, y_bar):
        x, weight, which = ctx.saved_tensors
        weight_bar = torch.zeros_like(weight).index_add(0, which, ctx.power * y_bar * x.log())
        return ctx.power * y_bar * weight[which] / x, weight_bar, None, None


def compiled(function, *args):
    with gradspec.watch() as seen:
        torch.compile(function, backend="aot_eager", fullgraph=True)(*args).sum().backward()
    program = seen.audit()
    (row,) = program.rows
    return program, row


@pytest.mark.dear
def test_what_is_only_compiled_is_audited_with_drawn_numbers():
    program, row = compiled(lambda x: Wrong.apply(x.exp()), torch.randn(4, 3, requires_grad=True))

    assert row.is_wrong
    assert row.asked[0].found.laws == ["surrogate"]
    (case, *_) = (verdict.case for verdict in row.report.of(law="surrogate"))
    assert case == "(float32[4, 3]), drawn in float64"
    assert "wrong silently: surrogate (numbers drawn)" in text(program)
    assert "seen by a compiler alone, as (float32[4, 3]), traced: numbers were drawn" in text(program)


@pytest.mark.dear
def test_a_right_one_has_no_finding_and_its_large_batch_is_cut():
    x = torch.randn(1 << 20, 3, requires_grad=True)
    program, row = compiled(lambda x: Cubed.apply(x * 2), x)

    assert not any(one.fails for one in row.asked)
    assert "(numbers drawn)" in text(program)
    assert {v.case for v in row.report.of(law="surrogate")} == {
        "(float32[4, 3]), drawn in float64",
        "(float32[4, 3]), drawn",
    }


@pytest.mark.dear
def test_numbers_are_drawn_where_the_function_is_defined_and_what_the_program_has_is_its_own():
    weight = torch.nn.Parameter(torch.tensor([2.0, 3.0]))
    which = torch.tensor([1, 0, 1])
    with gradspec.watch() as seen:
        call = torch.compile(lambda x: Logarithm.apply(x.exp(), weight, which, [2]), backend="aot_eager")
        call(torch.randn(3, requires_grad=True)).sum().backward()

        (function,) = seen._watcher.functions.values()
    assert [[t.tolist() for t in call.args[1:3]] for call in function.calls] == [[[2.0, 3.0], [1, 0, 1]]] * 2
    (row,) = seen.audit().rows
    assert not any(one.fails or one.is_question for one in row.asked)
    assert {str(v.status) for v in row.report.of(law="surrogate")} == {"holds"}
