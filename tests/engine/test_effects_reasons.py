"""State that moves between calls, writes that autograd is not told of, a module in the wrong mode; and look-alikes."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from gradspec import Case, FunctionSpec, ModuleCase, ModuleSpec, verify
from gradspec.laws import LAWS
from gradspec.spec import Effects


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return 2 * x * y_bar


class WritesThroughData(Square):
    @staticmethod
    def forward(ctx, x):
        y = Square.forward(ctx, x)
        x.data.add_(1e-3)
        return y


class WritesInPlace(Square):
    @staticmethod
    def forward(ctx, x):
        y = Square.forward(ctx, x)
        x.add_(1e-3)
        return y


class KeepsOnTheClass(Square):
    x = None

    @staticmethod
    def forward(ctx, x):
        KeepsOnTheClass.x = x
        return Square.forward(ctx, x)

    @staticmethod
    def backward(ctx, y_bar):
        return 2 * KeepsOnTheClass.x * y_bar


TABLE = {}


class KeepsATable(Square):
    """Its key leaves out all but the shape."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        table = TABLE.setdefault(x.ndim, x.detach().abs().sum() * 0 + x.numel())
        return x * x * (table / x.numel())


class Off(Square):
    """Wrong in each call: no state has moved."""

    @staticmethod
    def backward(ctx, y_bar):
        return 1.5 * Square.backward(ctx, y_bar)


class Returns(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar


class ReturnsData(Returns):
    @staticmethod
    def forward(ctx, x):
        return x.data


def cases(make):
    yield Case(name="short", args=(make(2, 3),))
    yield Case(name="long", args=(make(4, 3),))


def square(x):
    return x * x


def same(x):
    return x.clone()


SPEC = FunctionSpec(name="square", function=Square.apply, primal=square, wrt=("x",), cases=cases)
SAME = replace(SPEC, primal=same, function=Returns.apply)


def kinds(spec, *laws):
    """Return the kinds of the reasons that laws find."""
    TABLE.clear()
    run = verify([spec], [law for law in LAWS if law.name in ("primal", *laws)], isolate=True)
    found = [verdict.finding for verdict in run.verdicts if verdict.law in laws]
    return {f.reason.kind if f.reason else "" for f in found if f.is_failure and not f.follows}


@pytest.mark.parametrize(
    ("function", "law", "kind"),
    [
        (WritesThroughData, "inputs_untouched", {"untracked write"}),
        (WritesInPlace, "inputs_untouched", {"in-place write"}),
        (KeepsOnTheClass, "interleaved", {"shared state"}),
        (KeepsATable, "earlier_calls", {"kept state"}),
        (Square, "interleaved", set()),
        (Square, "earlier_calls", set()),
    ],
)
def test_what_a_call_leaves_behind_is_named(function, law, kind):
    assert kinds(replace(SPEC, function=function.apply), law) == kind


def test_a_function_that_is_wrong_in_each_call_has_not_moved_its_state():
    found = kinds(replace(SPEC, function=Off.apply), "vjp", "earlier_calls", "interleaved")
    assert found == {"factor"}


@pytest.mark.parametrize(("function", "kind"), [(Returns, "view"), (ReturnsData, "untracked alias")])
def test_an_alias_is_told_from_a_view(function, kind):
    assert kinds(replace(SAME, function=function.apply), "aliasing") == {kind}


def test_a_view_that_is_declared_is_none():
    assert kinds(replace(SAME, primal=lambda x: x.view_as(x), effects=Effects(view_of="x")), "aliasing") == set()


class Drops(nn.Module):
    def __init__(self):
        super().__init__()
        self.out, self.drop = nn.Linear(3, 2), nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.out(x))


class StaysInTraining(Drops):
    def train(self, mode=True):
        super().train(mode)
        self.drop.train()
        return self


class DropsAlways(Drops):
    """Whatever the mode: no mode is wrong."""

    def forward(self, x):
        return nn.functional.dropout(self.out(x), 0.5, training=True)


class BothAtOnce(StaysInTraining):
    def forward(self, x):
        return nn.functional.dropout(super().forward(x), 0.5, training=True)


@pytest.mark.parametrize(
    ("module", "kind"), [(Drops, set()), (StaysInTraining, {"wrong mode"}), (DropsAlways, {""}), (BothAtOnce, {""})]
)
def test_a_part_that_stays_in_training_is_named(module, kind):
    def made(make):
        yield ModuleCase(name="rows", args=(), inputs=(make(4, 3),))

    spec = ModuleSpec(name="drops", module=module, cases=made, wrt=("x",))
    run = verify([spec], [law for law in LAWS if law.name == "evaluation_mode"])
    found = [verdict.finding for verdict in run.verdicts if verdict.finding.is_failure]

    assert {f.reason.kind if f.reason else "" for f in found} == kind
    assert all("`drop` is in evaluation" in f.likely for f in found if kind == {"wrong mode"})
