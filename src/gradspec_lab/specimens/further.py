"""Functions for each further thing that a law finds: without them, a law could lose one of its findings unnoticed."""

from dataclasses import replace

import torch
from torch import Tensor
from torch.autograd import Function, forward_ad

from gradspec.laws.tensor.support._reference import stand_in
from gradspec.spec import Case, FunctionSpec, Supports
from gradspec_lab.specimens.diseased import DISEASED, diseased, diseased_as, enter
from gradspec_lab.specimens.hidden import beside_a_tangent
from gradspec_lab.specimens.honest import PRODUCT, SCALE, Product, Scale
from gradspec_lab.specimens.mixed import MULTIPLES, Multiples
from gradspec_lab.specimens.noisy import NOISE, SHAKEN, Shaken, drawing, drawn, shaken

__all__ = ["DISEASED"]  # where the decorator enters them


def as_if_contiguous(tensor: Tensor) -> Tensor:
    """Return the elements in the order of memory, as a kernel reads them that asks for no strides."""
    return torch.as_strided(tensor, tensor.shape, torch.empty(tensor.shape).stride())


def is_batched(x: Tensor) -> bool:
    """Whether `torch.vmap` is at work right inside the transform that is."""
    return torch._C._functorch.is_batchedtensor(torch._C._functorch.get_unwrapped(x))


@diseased(primal=r"forward returns another number of outputs")
class ReturnsTwice(Scale):
    @classmethod
    def apply(cls, x, factor):
        return (super().apply(x, factor),) * 2


@diseased(primal=r"the value is no tensor")
class ReturnsANumber(Scale):
    @classmethod
    def apply(cls, x, factor):
        return float(super().apply(x, factor).sum())


class NoExample(Scale):
    """Scale, and no example of it."""


@diseased(func_grad=r"gradient of `x` under torch.func.grad differs")
class AnotherGradientUnderFuncGrad(Scale):
    @classmethod
    def apply(cls, x, factor):
        return super().apply(x, 2 * factor if torch._C._functorch.is_functorch_wrapped_tensor(x) else factor)


@diseased(vmap=r"value \d of vmap over `x` in dimension -1 (differs|has the wrong shape)")
class VmapRuleOfTheFirstDimension(Scale):
    generate_vmap_rule = False

    @staticmethod
    def vmap(info, in_dims, x, factor):
        return Scale.apply(x, factor), 0


@diseased_as(PRODUCT, vmap=r"vmap with `x` in dimension 0, `weight` not batched")
class VmapRuleDoublesWhatIsNotBatched(Product):
    generate_vmap_rule = False

    @staticmethod
    def vmap(info, in_dims, x, weight):
        front = [
            2 * t.expand(info.batch_size, *t.shape) if dim is None else t.movedim(dim, 0)
            for t, dim in zip((x, weight), in_dims, strict=True)
        ]
        rank = max(t.ndim for t in front)
        return Product.apply(*(t.reshape(len(t), *[1] * (rank - t.ndim), *t.shape[1:]) for t in front)), 0


@diseased(vmap=r"gradient of `x` under vmap over `x` in dimension 0 differs")
class AnotherGradientUnderVmap(Scale):
    @classmethod
    def apply(cls, x, factor):
        is_within = torch._C._functorch.is_gradtrackingtensor(x) and is_batched(x)
        return super().apply(x, 2 * factor if is_within else factor)


@diseased(vmap=r"tangent of the output by jvp under vmap differs")
class AnotherTangentUnderVmap(Scale):
    @classmethod
    def apply(cls, x, factor):
        is_within = forward_ad.unpack_dual(x).tangent is not None and is_batched(x)
        return super().apply(x, 2 * factor if is_within else factor)


@diseased(cotangent_layout=r"^gradient of `x` \(transposed cotangent\) differs")
@beside_a_tangent(cotangent_layout=r"gradient of `x, order 1` \(transposed cotangent\) differs")
class MisreadsAStridedCotangent(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        return ctx.factor * as_if_contiguous(y_bar), None


@diseased(undefined_cotangent=r"the gradient of `x` without any cotangent is not zero")
class AddsToItsGradient(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        return ctx.factor * y_bar + 1, None


@diseased_as(MULTIPLES, undefined_cotangent=r"the gradient from output 0 alone raised TypeError")
class NeedsBothOrNone(Multiples):
    @staticmethod
    def backward(ctx, y_bar, z_bar):
        return None if y_bar is None and z_bar is None else 2 * y_bar + 3 * z_bar


@diseased_as(PRODUCT, needs_input_grad=r"gradient of `x` \(the only one required\) is None")
class MixesUpWhoNeedsAGradient(Product):
    @staticmethod
    def backward(ctx, y_bar):
        x, weight = ctx.saved_tensors
        weight_bar = (y_bar * x).sum_to_size(weight.shape) if ctx.needs_input_grad[0] else None
        return y_bar * weight if ctx.needs_input_grad[1] else None, weight_bar


class WrongBesideAFrozenBias(Function):
    """The product of two tensors plus a third: right where one gradient is asked for, and where all are."""

    @staticmethod
    def forward(x, weight, bias):
        return x * weight + bias

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx, y_bar):
        x, weight = ctx.saved_tensors
        needed = ctx.needs_input_grad
        sign = -1 if needed == (True, True, False) else 1
        bars = (sign * y_bar * weight, y_bar * x, y_bar)
        return tuple(bar if asked else None for bar, asked in zip(bars, needed, strict=True))


enter(
    "wrong_beside_a_frozen_bias",
    FunctionSpec(
        name="shifted_product",
        function=WrongBesideAFrozenBias.apply,
        primal=lambda x, weight, bias: x * weight + bias,
        surrogate=lambda x, weight, bias: x * weight + bias,
        wrt=("x", "weight", "bias"),
        cases=lambda make: iter([Case(name="vectors", args=(make(3), make(3), make(3)))]),
        supports=Supports.all(),
    ),
    needs_input_grad=r"gradient of `x` \(with `bias` frozen\) differs",
)


@diseased(needs_input_grad=r"the output requires grad though no input does")
class AlwaysRequiresGrad(Scale):
    @classmethod
    def apply(cls, x, factor):
        return super().apply(x, factor) if x.requires_grad else x.clone().requires_grad_()


@diseased_as(PRODUCT, keyword_call=r"value of the keyword call differs")
class TakesAKeywordForAnother(Product):
    @classmethod
    def apply(cls, *args, x=None, weight=None):
        return super().apply(*(args or (x, 2 * weight)))


@diseased(wrong_call=r"the wrong call gets another error than documented")
class AnotherErrorThanDocumented(Scale):
    @classmethod
    def apply(cls, x, factor):
        return super().apply(x, 1 * factor + 0.0)


@diseased(wrong_call=r"refused after argument 0 had changed")
class ChangesWhatItRefuses(Scale):
    @classmethod
    def apply(cls, x, factor):
        if isinstance(factor, str):
            x.data.add_(1)
        return super().apply(x, factor)


@diseased_as(PRODUCT, inputs_untouched=r"^backward writes to `x`: its values have changed")
class WritesToItsInputInBackward(Product):
    @staticmethod
    def backward(ctx, y_bar):
        ctx.saved_tensors[0].data.add_(1e-6)
        return Product.backward(ctx, y_bar)


@diseased(layout=r"value \(transposed inputs\) differs")
class MisreadsAStridedInput(Scale):
    @staticmethod
    def forward(x, factor):
        return as_if_contiguous(x).clone()


@diseased(layout=r"gradient of `x` \(transposed inputs\) differs")
class AnotherGradientOfAStridedInput(Scale):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1] * (1 if inputs[0].is_contiguous() else 2)


@diseased(autocast=r"output 0 under autocast has another dtype")
class AnotherDtypeUnderAutocast(Scale):
    @staticmethod
    def forward(x, factor):
        return x.half() if torch.is_autocast_enabled("cpu") else x.clone()


def _noise_of_its_own_in_backward(x: Tensor, own=torch.Generator().manual_seed(0)) -> Tensor:  # noqa: B008  # kept, on purpose
    return Shaken.apply(x, drawn(x), torch.rand(len(x), 1, dtype=x.dtype, generator=own))


class _AnElement(Function):
    @staticmethod
    def forward(x):
        return torch.rand_like(x) * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.beta = 1.0

    @staticmethod
    def backward(ctx, y_bar):
        return drawn(y_bar) * y_bar


def _another_value_under_compile(x: Tensor, factor: float) -> Tensor:
    return Scale.apply(x, factor) * (2 if torch.compiler.is_compiling() else 1)


def _another_value_under_compile_without_a_gradient(x: Tensor, factor: float) -> Tensor:
    return _another_value_under_compile(x, factor).detach()


enter(
    "another_value_under_compile",
    SCALE.for_(_another_value_under_compile, name="x"),
    compile=r"value under torch.compile .*differs",
    compile_vmap=r"value 0 under torch.compile of torch.vmap differs",
)
enter(
    "another_value_under_compile_without_a_gradient",
    replace(SCALE.for_(_another_value_under_compile_without_a_gradient, name="x"), wrt=()),
    compile=r"value under torch.compile .*differs",
)
enter("no_example", replace(SCALE, documented=(NoExample,)), examples=r"the docstring has no example")
enter(
    "gradient_of_another_function",
    replace(SCALE, surrogate=stand_in(lambda x, factor: Scale.apply(x.sin(), factor))),
    surrogate=r"backward does not apply the derivative of what forward computes",
)


class OverflowsInFloat32(Scale):
    """Without a spec the function itself is what it is compared with, and has the same NaN."""

    @staticmethod
    def backward(ctx, y_bar):
        large = torch.full_like(y_bar, 200.0).exp()
        return ctx.factor * y_bar * (large / large), None


enter(
    "overflows_in_float32",
    replace(
        SCALE.for_(OverflowsInFloat32.apply, name="x"),
        primal=stand_in(OverflowsInFloat32.apply),
        surrogate=stand_in(OverflowsInFloat32.apply),
    ),
    precision=r"gradient of `x` is NaN in float32 in \d+ of \d+ elements, and the value is finite",
)
drawing(
    "own_generator_in_backward",
    _noise_of_its_own_in_backward,
    replayed=r"gradient in a second call from the same state of the generators of `x` differs",
)
drawing("one_draw_an_element", _AnElement.apply, distribution=r"`a` differs within a sample")
enter(
    "draws_in_evaluation",
    replace(SHAKEN, noise=replace(NOISE, evaluation=shaken)),
    evaluation=r"in evaluation, forward draws from torch's generator of cpu",
)
enter(
    "value_not_at_rest_in_evaluation",
    replace(SHAKEN, noise=replace(NOISE, evaluation=lambda x: x / 3)),
    evaluation=r"value in evaluation differs",
)
