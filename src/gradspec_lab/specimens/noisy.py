"""Functions with noise: a sound one, and one for each way to draw wrongly."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy
import torch
from torch import Tensor
from torch.autograd import Function

from gradspec.spec import Case, FunctionSpec, Make, Noise, Supports
from gradspec_lab.specimens.diseased import diseased_as, enter
from gradspec_lab.specimens.honest import SCALE, Scale


@torch.compiler.allow_in_graph
class Shaken(Function):
    """Multiply x by one random number a sample, and its cotangent by another one."""

    generate_vmap_rule = True

    @classmethod
    def apply(cls, x, a, b):
        if torch.compiler.is_exporting():
            return (a * x).detach() + b * (x - x.detach())
        return super().apply(x, a, b)

    @staticmethod
    def forward(x, a, b):
        return a * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[2])
        ctx.save_for_forward(inputs[2])

    @staticmethod
    def backward(ctx, y_bar):
        return ctx.saved_tensors[0] * y_bar, None, None

    @staticmethod
    def jvp(ctx, x_dot, *_):
        return ctx.saved_tensors[0] * x_dot


def drawn(x: Tensor) -> Tensor:
    return torch.rand(len(x), 1, dtype=x.dtype, device=x.device)


def shaken(x: Tensor) -> Tensor:
    return Shaken.apply(x, drawn(x), drawn(x))


def at_rest(x: Tensor) -> Tensor:
    half = x.new_full((len(x), 1), 0.5)
    return Shaken.apply(x, half, half)


def _cases(make: Make) -> Iterator[Case]:
    yield Case(name="rows", args=(make(3, 2), make(3, 1), make(3, 1)))
    yield Case(name="empty", args=(make(0, 2), make(0, 1), make(0, 1)))


def _recover(y: Tensor, gradients: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {"a": y, "b": gradients["x"]}


NOISE = Noise(
    names=("a", "b"),
    drawing=shaken,
    law="uniform on [0, 1)",
    cdf=lambda number: number.clamp(0, 1),
    probe=lambda n, x: (x.new_ones(n, 2),),
    recover=_recover,
    evaluation=at_rest,
    at_rest={"a": 0.5, "b": 0.5},
)
SHAKEN = FunctionSpec(
    name="shaken",
    function=Shaken.apply,
    primal=lambda x, a, b: a * x,
    surrogate=lambda x, a, b: b * x,
    wrt=("x",),
    cases=_cases,
    noise=NOISE,
    supports=Supports.all(),
)


def drawing(name: str, form, **caught_by: str) -> None:
    """Enter a sick way to draw, under the name of its disease."""
    enter(name, replace(SHAKEN, noise=replace(NOISE, drawing=form)), **caught_by)


@diseased_as(SCALE, declared_draws=r"^forward draws from torch's generator of cpu, which is not declared")
class HiddenDraw(Scale):
    @staticmethod
    def forward(x, factor):
        return x + 0 * torch.rand(())


@diseased_as(SCALE, declared_draws=r"^backward draws from numpy's generator, which no checkpoint of torch rewinds")
class DrawsFromNumpy(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        return (ctx.factor + 0 * numpy.random.rand()) * y_bar, None


class DrawsInBackward(Function):
    @staticmethod
    def forward(x):
        return drawn(x) * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, y_bar):
        return drawn(y_bar) * y_bar


class DrawsAside(DrawsInBackward):
    """Put the generator back behind the draw of backward."""

    @staticmethod
    def backward(ctx, y_bar):
        with torch.random.fork_rng(devices=[]):
            return drawn(y_bar) * y_bar


def _for_a_gradient_only(x: Tensor) -> Tensor:
    a = drawn(x)
    return Shaken.apply(x, a, drawn(x) if torch.is_grad_enabled() else a)


def _own_generator(x: Tensor, own=torch.Generator().manual_seed(0)) -> Tensor:  # noqa: B008  # kept, on purpose
    a, b = torch.rand(2, len(x), 1, dtype=x.dtype, generator=own)
    return Shaken.apply(x, a, b)


def _one_draw_a_batch(x: Tensor) -> Tensor:
    return Shaken.apply(x, drawn(x[:1]).expand(len(x), 1), drawn(x))


def _another_law(x: Tensor) -> Tensor:
    return Shaken.apply(x, drawn(x) ** 1.2, drawn(x))


def _same_noise_both_ways(x: Tensor) -> Tensor:
    a = drawn(x)
    return Shaken.apply(x, a, a)


def _shared_by_neighbours(x: Tensor) -> Tensor:
    return Shaken.apply(x, drawn(x[: (len(x) + 1) // 2]).repeat_interleave(2, 0)[: len(x)], drawn(x))


def _seeds_itself(x: Tensor) -> Tensor:
    torch.manual_seed(7)
    return shaken(x)


@torch.compiler.allow_in_graph
class RandomGradient(Function):
    @staticmethod
    def forward(x):
        return x / 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, y_bar):
        return drawn(y_bar) * y_bar


def _not_at_rest(x: Tensor) -> Tensor:
    whole = x.new_ones(len(x), 1)
    return Shaken.apply(x, whole / 2, whole)


drawing(
    "draws_in_backward",
    DrawsInBackward.apply,
    declared_draws=r"^in the form that draws, backward draws from torch's generator of cpu",
    replayed=r"gradient in a second backward pass over one graph of `x` differs",
)
drawing(
    "draws_by_position_only",
    lambda *args: shaken(*args),
    keyword_call=r"^called with x=\.\.\. the form that draws raised TypeError",
)
drawing(
    "draws_for_a_gradient_only",
    _for_a_gradient_only,
    declared_draws=r"another count of numbers under no_grad than with a gradient",
)
drawing(
    "own_generator",
    _own_generator,
    declared_draws=r"does not draw from torch's generator of cpu",
    replayed=r"value in a second call from the same state of the generators differs",
)
drawing("one_draw_a_batch", _one_draw_a_batch, distribution=r"`a` is not uniform on \[0, 1\): .* apart")
drawing("another_law", _another_law, distribution=r"`a` is not uniform on \[0, 1\): .* apart")
drawing("same_noise_both_ways", _same_noise_both_ways, distribution=r"`a` and `b` of one sample are not independent")
drawing(
    "noise_shared_by_neighbours",
    _shared_by_neighbours,
    distribution=r"`a` of neighbouring samples are not independent",
)
drawing("seeds_itself", _seeds_itself, distribution=r"`a` of one call and of the next are not independent")
enter(
    "random_in_evaluation",
    replace(SHAKEN, noise=replace(NOISE, evaluation=RandomGradient.apply)),
    evaluation=r"in evaluation, backward draws from torch's generator of cpu",
)
enter(
    "gradient_not_at_rest_in_evaluation",
    replace(SHAKEN, noise=replace(NOISE, evaluation=_not_at_rest)),
    evaluation=r"gradient in evaluation of `x` differs",
)


class SeedsInForward(Function):
    @staticmethod
    def forward(x):
        torch.manual_seed(7)
        return drawn(x) * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output / inputs[0])

    @staticmethod
    def backward(ctx, y_bar):
        return ctx.saved_tensors[0] * y_bar


class KeepsAGenerator(SeedsInForward):
    own = torch.Generator().manual_seed(0)

    @staticmethod
    def forward(x):
        return torch.rand(len(x), 1, dtype=x.dtype, generator=KeepsAGenerator.own) * x


def inside(name: str, function: type[Function], **caught_by: str) -> None:
    """Enter a function that draws inside, as its primal does, under the name of its disease."""

    def cases(make: Make) -> Iterator[Case]:
        yield Case(name="rows", args=(make(3, 2),))

    spec = FunctionSpec(name=name, function=function.apply, primal=lambda x: drawn(x) * x, wrt=("x",), cases=cases)
    enter(name, spec, **caught_by)


inside("draws_anew_in_backward", DrawsInBackward, declared_draws=r"^backward draws noise anew: the gradient belongs to")
inside("draws_aside_in_backward", DrawsAside, declared_draws=r"^backward draws noise anew: the gradient belongs to")
inside("seeds_in_forward", SeedsInForward, declared_draws=r"^forward seeds torch's generator of cpu: each call draws")
inside("keeps_a_generator", KeepsAGenerator, declared_draws=r"^two calls from one state of the generators differ")
NOISY = (SHAKEN,)
