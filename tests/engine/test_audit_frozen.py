"""An audit of a backward that does something else where an argument is frozen; only itself says what is right."""

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.law import Rank, Status
from gradspec.laws import LAWS
from gradspec_lab.specimens.further import WrongBesideAFrozenBias

LAW = [law for law in LAWS if law.name == "needs_input_grad"]


class Product(Function):
    """The square of x times w, with a branch for each frozen argument; all of them are right."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * x * w

    @staticmethod
    def bars(ctx, y_bar):
        x, w = ctx.saved_tensors
        return 2 * y_bar * x * w, y_bar * x * x

    @classmethod
    def backward(cls, ctx, y_bar):
        (x_bar, w_bar), (asks_x, asks_w) = cls.bars(ctx, y_bar), ctx.needs_input_grad
        if asks_x and asks_w:
            return x_bar, w_bar
        return (x_bar, None) if asks_x else (None, w_bar)


class WrongAlone(Product):
    @classmethod
    def backward(cls, ctx, y_bar):
        x_bar, w_bar = Product.backward(ctx, y_bar)
        return (x_bar / 2, None) if w_bar is None else (x_bar, w_bar)


class SwappedNeeds(Product):
    @classmethod
    def backward(cls, ctx, y_bar):
        needed = reversed(ctx.needs_input_grad)
        return tuple(bar if need else None for bar, need in zip(cls.bars(ctx, y_bar), needed, strict=True))


class Packed(Product):
    """The gradients that are asked for, packed to the left."""

    @classmethod
    def backward(cls, ctx, y_bar):
        packed = [bar for bar in Product.backward(ctx, y_bar) if bar is not None]
        return *packed, *[None] * (2 - len(packed))


class LostWhenFrozen(Product):
    @classmethod
    def backward(cls, ctx, y_bar):
        return cls.bars(ctx, y_bar) if all(ctx.needs_input_grad) else (None, None)


class NoisyTwice(Function):
    """Noise in forward, and rounding at random in backward, drawn only for what is asked for."""

    @staticmethod
    def forward(ctx, x, w):
        mask = torch.rand_like(x)
        ctx.save_for_backward(x, w, mask)
        return x * w * mask

    @staticmethod
    def backward(ctx, y_bar):
        x, w, mask = ctx.saved_tensors
        bars = (y_bar * w * mask, y_bar * x * mask)
        asked = zip(bars, ctx.needs_input_grad, strict=True)
        return tuple(torch.floor(bar * 64 + torch.rand_like(bar)) / 64 if needed else None for bar, needed in asked)


class LostInNoise(NoisyTwice):
    @staticmethod
    def backward(ctx, y_bar):
        return NoisyTwice.backward(ctx, y_bar) if all(ctx.needs_input_grad) else (None, None)


def judged(function, text):
    (verdict,) = audit(function, [text], laws=LAW, jobs=1).report.verdicts
    return verdict


def test_a_right_branch_for_each_frozen_argument_holds():
    assert judged(Product, "(randn(3), randn(3))").status is Status.HOLDS


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (WrongAlone, "gradient of `x` (the only one required) differs in 3 of 3 elements"),
        (SwappedNeeds, "gradient of `x` (the only one required) is None"),
        (Packed, "gradient of `w` (the only one required) is None"),
        (LostWhenFrozen, "gradient of `x` (the only one required) is None"),
    ],
)
def test_a_gradient_that_is_wrong_beside_a_frozen_argument_is_broken_and_wrong(function, said):
    verdict = judged(function, "(randn(3), randn(3))")

    assert (verdict.status, verdict.finding.rank) == (Status.BROKEN, Rank.WRONG)
    assert verdict.finding.message.startswith(said)


def test_one_frozen_argument_of_three_is_enough_and_waste_hides_nothing():
    class Wasteful(WrongBesideAFrozenBias):
        @staticmethod
        def backward(ctx, y_bar):
            x_bar, *_ = WrongBesideAFrozenBias.backward(ctx, y_bar)
            return x_bar, y_bar * ctx.saved_tensors[0], y_bar

    finding = judged(Wasteful, "(randn(3), randn(3), randn(3))").finding

    assert finding.rank == Rank.WRONG
    assert finding.message.startswith("gradient of `x` (with `bias` frozen) differs")


@pytest.mark.slow
def test_what_backward_draws_may_depend_on_what_is_asked_for():
    verdict = judged(NoisyTwice, "(randn(3), randn(3))")

    assert verdict.status is Status.NOT_MEASURED
    assert "draws noise that is not declared" in verdict.finding.message


@pytest.mark.slow
def test_noise_excuses_no_gradient_that_is_lost():
    assert judged(LostInNoise, "(randn(3), randn(3))").status is Status.BROKEN
