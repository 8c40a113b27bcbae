"""What a call leaves behind beside its result: arguments, objects and generators."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import torch
from torch.autograd import Function

from gradspec import Case, FunctionSpec, verify
from gradspec.law import Rank, Status
from gradspec.laws import LAWS


def found(spec, law):
    verdicts = verify([spec], laws=[one for one in LAWS if one.name in (law, "primal", "vjp")]).verdicts
    return next(v for v in verdicts if v.law == law)


class Marked(Function):
    @staticmethod
    def forward(ctx, hidden):
        ctx.mark_dirty(hidden.tanh_())
        ctx.save_for_backward(hidden)
        return hidden

    @staticmethod
    def backward(ctx, g):
        return g * (1 - ctx.saved_tensors[0] ** 2)


class Unmarked(Marked):
    @staticmethod
    def forward(ctx, hidden):
        hidden.tanh_()
        ctx.save_for_backward(hidden)
        return hidden


class MarkedApart(Marked):
    @staticmethod
    def forward(hidden):
        return hidden.tanh_()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_dirty(output)
        ctx.save_for_backward(output)


class UnmarkedApart(MarkedApart):
    @staticmethod
    def forward(hidden):
        return hidden.tanh_().clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)


@pytest.mark.parametrize(
    ("function", "said"), [(Marked, ""), (MarkedApart, ""), (Unmarked, "`hidden`"), (UnmarkedApart, "`hidden`")]
)
def test_what_is_written_in_place_behind_a_wrapper_is_marked(function, said):
    spec = FunctionSpec(
        lambda x: function.apply(x.clone()),
        lambda x: x.tanh(),
        name="tanh_",
        cases=lambda make: [make(3)],
        implementation=function,
    )
    verdict = found(spec, "inputs_untouched")
    assert verdict.status is (Status.BROKEN if said else Status.HOLDS)
    assert (
        not said or f"forward of {function.__name__} writes to {said} and does not mark it" in verdict.finding.message
    )


@dataclass
class Group:
    size: int
    seen: list[int] = field(default_factory=list)


class Summed(Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.size = group.size
        return x * group.size

    @staticmethod
    def backward(ctx, g):
        return g * ctx.size, None


class Shrinks(Summed):
    @staticmethod
    def forward(ctx, x, group):
        y = Summed.forward(ctx, x, group)
        group.size = 1
        return y


class Counts(Summed):
    """It notes its calls in what it is given, and computes the same."""

    @staticmethod
    def forward(ctx, x, group):
        group.seen.append(1)
        return Summed.forward(ctx, x, group)


def summed(function, **more):
    return FunctionSpec(
        function.apply,
        lambda x, group: x * group.size,
        name="summed",
        cases=lambda make: [Case(make(3), Group(4))],
        **more,
    )


@pytest.mark.parametrize("function", [Summed, Counts])
def test_an_object_may_be_noted_in_where_that_decides_nothing(function):
    assert found(summed(function), "inputs_untouched").status is Status.HOLDS


def test_an_object_that_decides_the_next_call_is_not_changed():
    verdict = found(summed(Shrinks), "inputs_untouched")
    assert (verdict.status, verdict.finding.rank) == (Status.BROKEN, Rank.WRONG)
    assert "group.size was 4, and is 1, and a second call gives another value" in verdict.finding.message


class Again(Function):
    """Dropout that is computed once more in backward, from the state in which forward found the generator."""

    restores = True

    @staticmethod
    def forward(ctx, x):
        ctx.state = torch.get_rng_state()
        return torch.nn.functional.dropout(x, 0.5)

    @classmethod
    def backward(cls, ctx, g):
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        mask = torch.nn.functional.dropout(torch.ones_like(g), 0.5)
        if cls.restores:
            torch.set_rng_state(now)
        return g * mask


class LeftThere(Again):
    restores = False


@pytest.mark.parametrize(("function", "is_wrong"), [(Again, False), (LeftThere, True)])
def test_backward_leaves_the_generator_where_it_was(function, is_wrong):
    spec = FunctionSpec(
        function.apply,
        lambda x: torch.nn.functional.dropout(x, 0.5),
        name="again",
        noise="replayed",
        cases=lambda make: [make(20)],
    )
    verdict = found(spec, "declared_draws")
    assert verdict.status is (Status.BROKEN if is_wrong else Status.HOLDS)
    assert not is_wrong or "where forward had it: what was drawn in between is drawn again" in verdict.finding.message


class Added(Function):
    """An auxiliary loss that is hung on a tensor: its gradient is one, whatever comes from above."""

    factor = 1.0

    @staticmethod
    def forward(ctx, x, loss):
        return x.clone()

    @classmethod
    def backward(cls, ctx, g):
        return g, torch.full((1,), cls.factor, dtype=g.dtype)


class Doubled(Added):
    factor = 2.0


@pytest.mark.parametrize(("function", "status"), [(Added, Status.HOLDS), (Doubled, Status.BROKEN)])
def test_a_declared_gradient_may_have_a_part_without_a_cotangent(function, status):
    spec = FunctionSpec(
        function.apply,
        lambda x, loss: x,
        name="added",
        gradient=lambda inputs, output, cotangent: {"x": cotangent, "loss": torch.ones_like(inputs.loss)},
        cases=lambda make: [Case(make(4, 3), make(1))],
    )
    assert found(spec, "undefined_cotangent").status is status
