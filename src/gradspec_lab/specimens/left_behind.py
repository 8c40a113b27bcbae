"""Functions that change more than they return: an argument, an object or a generator; and one with a sparse value."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd import Function

from gradspec.spec import Case, FunctionSpec, Make
from gradspec_lab.specimens.diseased import DISEASED, diseased, enter
from gradspec_lab.specimens.honest import Scale
from gradspec_lab.specimens.noisy import drawn

__all__ = ["DISEASED"]  # where the decorator enters them


@diseased(primal=r"the value has another layout")
class ReturnsSparse(Scale):
    @classmethod
    def apply(cls, x, factor):
        return super().apply(x, factor).to_sparse()


class SquashesUnmarked(Function):
    @staticmethod
    def forward(ctx, hidden):
        ctx.save_for_backward(hidden.tanh_())
        return hidden

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar * (1 - ctx.saved_tensors[0] ** 2)


class MovesTheBiasedVariance(Function):
    """Centres its rows, and moves a statistic that nothing reads."""

    @staticmethod
    def forward(ctx, x, variance):
        variance.lerp_(x.var(0, unbiased=False), 0.1)
        return x - x.mean(0)

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar - y_bar.mean(0), None


def centred(x, variance):
    """Return the rows without their mean; the unbiased variance moves."""
    variance.lerp_(x.detach().var(0), 0.1)
    return x - x.mean(0)


@dataclass
class Times:
    """What a call is given beside its tensors."""

    factor: float


class ChangesItsFactor(Function):
    @staticmethod
    def forward(ctx, x, times):
        ctx.factor, times.factor = times.factor, 1.0
        return x * ctx.factor

    @staticmethod
    def backward(ctx, y_bar):
        return ctx.factor * y_bar, None


def leaves_a_hook(x):
    if x.requires_grad:
        x.register_hook(lambda x_bar: x_bar / 2)
    return x.tanh()


class LeavesTheGeneratorBack(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.state = torch.get_rng_state()
        return drawn(x) * x

    @staticmethod
    def backward(ctx, y_bar):
        torch.set_rng_state(ctx.state)
        return drawn(y_bar) * y_bar


class AddsTwiceTheLoss(Function):
    @staticmethod
    def forward(ctx, x, loss):
        return x.clone()

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar, torch.full((1,), 2, dtype=y_bar.dtype)


def _behind(
    name: str,
    wrt: tuple[str, ...],
    function: Callable[..., Any],
    primal: Callable[..., Any],
    args: Callable[[Make], Any],
    **how: Any,
) -> None:
    """Enter a function with one call, under the name of its disease.

    What is differentiated is named: to find it out takes a gradient, and who imports this may want children that do.
    """
    caught_by = how.pop("caught_by")

    def cases(make: Make) -> Iterator[Case]:
        yield Case(name="one", args=args(make))

    enter(name, FunctionSpec(name=name, function=function, primal=primal, wrt=wrt, cases=cases, **how), **caught_by)


_behind(
    "squashes_unmarked",
    ("x",),
    lambda x: SquashesUnmarked.apply(x.clone()),
    lambda x: x.tanh(),
    lambda make: (make(3),),
    implementation=SquashesUnmarked,
    caught_by={"inputs_untouched": r"forward of SquashesUnmarked writes to `hidden` and does not mark it"},
)
_behind(
    "moves_the_biased_variance",
    ("x",),
    MovesTheBiasedVariance.apply,
    centred,
    lambda make: (make(3, 2), make(2)),
    caught_by={"inputs_untouched": r"^forward writes other numbers to `variance` than the primal does"},
)
_behind(
    "changes_its_factor",
    ("x",),
    ChangesItsFactor.apply,
    lambda x, times: x * times.factor,
    lambda make: (make(3), Times(2.0)),
    caught_by={"inputs_untouched": r"times\.factor was 2\.0, and is 1\.0, and a second call gives another value"},
)
_behind(
    "leaves_a_hook",
    ("x",),
    leaves_a_hook,
    lambda x: x.tanh(),
    lambda make: (make(3),),
    surrogate=lambda x: x.tanh() / 2,
    caught_by={"inputs_untouched": r"^gradient of a second call with the same tensors of `x`"},
)
_behind(
    "leaves_the_generator_back",
    ("x",),
    LeavesTheGeneratorBack.apply,
    lambda x: drawn(x) * x,
    lambda make: (make(3, 2),),
    caught_by={"declared_draws": r"^backward leaves torch's generator of cpu where forward had it"},
)
_behind(
    "adds_twice_the_loss",
    ("x", "loss"),
    AddsTwiceTheLoss.apply,
    lambda x, loss: x,
    lambda make: (make(3), make(1)),
    gradient=lambda inputs, output, cotangent: {"x": cotangent, "loss": torch.ones_like(inputs.loss)},
    caught_by={"undefined_cotangent": r"the gradient of `loss` without any cotangent is not zero"},
)
