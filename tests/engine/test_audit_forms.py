"""Calls of every form: lists, dicts, keywords, several outputs, modules and operators."""

import pytest
import torch
from torch.autograd import Function

from engine.test_audit_reference import OldSquare
from gradspec import audit
from gradspec.law import Status
from gradspec.laws import LAWS

CHEAP = [law for law in LAWS if law.name in ("surrogate", "second_order", "retained_graph", "fake", "needs_input_grad")]


class Joined(Function):
    """Tensors one below the other."""

    @staticmethod
    def forward(ctx, *parts):
        ctx.rows = [len(part) for part in parts]
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, y_bar):
        return tuple(
            part if need else None for part, need in zip(y_bar.split(ctx.rows), ctx.needs_input_grad, strict=True)
        )


class Forgets(Joined):
    """No gradient for the second part."""

    @staticmethod
    def backward(ctx, y_bar):
        first, *rest = Joined.backward(ctx, y_bar)
        return first, *(None for _ in rest)


def joined(parts):
    return Joined.apply(*parts)


def keyword(x, *, scale=2.0, shift=None):
    y = OldSquare.apply(x) * scale
    return y if shift is None else y + shift


def of_dict(tensors):
    return OldSquare.apply(tensors["a"]) + tensors["b"]


def to_dict(x):
    return {"square": OldSquare.apply(x), "mean": x.mean(), "size": 3}


class Largest(Function):
    """A value and its place."""

    @staticmethod
    def forward(ctx, x):
        value, place = x.max(dim=-1)
        ctx.save_for_backward(x, place)
        ctx.mark_non_differentiable(place)
        return value, place

    @staticmethod
    def backward(ctx, y_bar, _):
        x, place = ctx.saved_tensors
        return torch.zeros_like(x).scatter(-1, place[..., None], y_bar[..., None])


class Layer(torch.nn.Module):
    """Parameters and a buffer in float32, as modules have them."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([0.5, 1.5, -2.0]))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count += 1
        return OldSquare.apply(x) * self.weight


@pytest.mark.parametrize(
    ("function", "case", "wrt"),
    [
        (joined, "([randn(2, 3), randn(1, 3)],)", "('parts',)"),
        (Joined, "(randn(2, 3), randn(1, 3))", "('parts',)"),
        (keyword, "(randn(2, 3), scale=0.5)", "('x',)"),
        (keyword, "(randn(2, 3), shift=randn(3))", "('x', 'shift')"),
        (of_dict, "({'a': randn(2, 3), 'b': randn(2, 3)},)", "('tensors',)"),
        (Largest, "(randn(2, 3),)", "('x',)"),
    ],
)
def test_a_call_of_any_form_is_judged_and_its_proposal_agrees(function, case, wrt):
    found = audit(function, [case], laws=CHEAP)

    assert found.report.failures == ()
    assert {v.status for v in found.report.of(law="surrogate")} == {Status.HOLDS}
    assert not any("No gradient" in remark for remark in found.remarks)
    assert f"    wrt={wrt}," in found.proposal


def test_the_tensors_of_a_dict_are_judged():
    found = audit(to_dict, ["(randn(2, 3),)"], laws=CHEAP)

    assert found.report.failures == ()
    assert "    function=tensors,\n" in found.proposal


def test_a_part_of_a_list_that_gets_no_gradient_is_seen():
    found = audit(Forgets, ["(randn(2, 3), randn(1, 3))"], laws=CHEAP)

    (verdict,) = found.report.of(law="surrogate")
    assert verdict.status is Status.QUESTION
    assert "Backward returns no gradient for `parts[1]`, and the output moves with it." in verdict.finding.message


def test_a_module_is_judged_with_its_parameters_in_the_dtype_of_the_call():
    layer = Layer()
    found = audit(layer, ["(randn(2, 3),)"], laws=CHEAP, name="layer")

    assert found.report.failures == ()
    assert {v.status for v in found.report.of(law="surrogate")} == {Status.HOLDS}
    assert layer.count == 0
    assert "LAYER = ModuleSpec(" in found.proposal


def test_an_operator_has_the_names_of_its_schema():
    found = audit(torch.ops.aten.addcmul, ["(randn(2), randn(2), randn(2), value=0.5)"], laws=CHEAP, name="addcmul")

    assert found.report.failures == ()
    assert "operator='aten::addcmul'," in found.proposal
    assert "stand_in(OperatorSpec.called('aten::addcmul'))" in found.proposal


SLOPE = torch.tensor(0.5)


def with_a_tensor_as_default(x, slope=SLOPE):
    return x * slope


def test_a_default_that_is_a_tensor_is_written_as_one():
    found = audit(with_a_tensor_as_default, ["(randn(2),)"], laws=CHEAP)

    assert "lambda x, slope=torch.tensor(0.5, dtype=torch.float32): " in found.proposal


class AsksForAGradient(Function):
    """Another value where a gradient is asked for."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3 if ctx.needs_input_grad[0] else x**2

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * y_bar


def test_the_value_that_is_differentiated_is_that_of_training():
    found = audit(AsksForAGradient, ["(randn(2, 3),)"], laws=CHEAP)

    assert {v.status for v in found.report.of(law="surrogate")} == {Status.HOLDS}


def test_a_call_that_returns_no_tensor_says_so():
    found = audit(lambda x: x.sum().item(), ["(randn(2),)"], laws=CHEAP, name="number")

    (verdict,) = found.report.verdicts
    assert verdict.finding.message == "a plain call raises TypeError: the call returns float, and no tensor in it"
    assert verdict.finding.likely.startswith("let it return a tensor for this call")


@pytest.mark.parametrize("cases", ["(randn(3),)", torch.ones(3)])
def test_one_call_in_place_of_a_list_of_them_is_refused(cases):
    with pytest.raises(TypeError, match="cases is one call, and not a list of them: write \\["):
        audit(joined, cases)


def test_no_law_that_is_asked_for_can_judge_without_a_reference():
    with pytest.raises(ValueError, match="no law is left of vjp: it compares with a reference, and none is given"):
        audit(Joined, ["(randn(3),)"], laws=["vjp"])
