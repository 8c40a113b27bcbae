"""Functions broken on purpose: what each law must catch, and the words in which it says so."""

from dataclasses import dataclass, replace

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from gradspec.spec import Effects, Formula, FunctionSpec, Saved, Spec
from gradspec_lab.specimens.honest import PRODUCT, SCALE, Product, Scale


@dataclass(frozen=True, kw_only=True)
class Disease:
    """A specimen, the laws that must break on it, and what their message says."""

    spec: Spec
    #: Law name to a regular expression of the message.
    caught_by: dict[str, str]


class Specimens(dict[str, Disease]):
    """Diseases by name; one that is taken is refused, where a dictionary would drop the first."""

    def __setitem__(self, name: str, disease: Disease) -> None:
        if name in self:
            raise ValueError(f"two specimens are called {name!r}: give one of them another name")
        super().__setitem__(name, disease)


DISEASED = Specimens()


def diseased(**caught_by: str):
    """Enter a sick variant of Scale, under the name of its disease."""
    return diseased_as(SCALE, **caught_by)


def diseased_as(spec: FunctionSpec, **caught_by: str):
    """Enter a sick variant of the function of an honest spec, under the name of its disease."""

    def enter(cls):
        torch.compiler.allow_in_graph(cls)
        name = "".join(f"_{c.lower()}" if c.isupper() else c for c in cls.__name__).lstrip("_")
        DISEASED[name] = Disease(spec=spec.for_(cls.apply, name=name), caught_by=caught_by)
        return cls

    return enter


def enter(name: str, spec: FunctionSpec, **caught_by: str) -> None:
    DISEASED[name] = Disease(spec=replace(spec, name=name), caught_by=caught_by)


# values


@diseased(primal=r"value differs")
class WrongValue(Scale):
    @staticmethod
    def forward(x, factor):
        return x.clone() * (1 + 1e-9)


@diseased(raw_returns=r"and torch casts it silently")
class LowerPrecisionBackward(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        return (ctx.factor * y_bar).float(), None


@diseased(empty=r"raised")
class CrashesOnAnEmptyBatch(Scale):
    @staticmethod
    def forward(x, factor):
        x.max()
        return x.clone()


@diseased(scalar=r"raised IndexError")
class NeedsABatchDimension(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        y_bar.shape[0]
        return ctx.factor * y_bar, None


@diseased(precision=r"output 0 has another dtype in low precision")
class PromotesLowPrecision(Scale):
    @staticmethod
    def forward(x, factor):
        return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x.clone()


@diseased(precision=r"gradient of `x` is less accurate than the reference")
class RoundsInside(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        low = torch.bfloat16 if y_bar.dtype == torch.float32 else y_bar.dtype
        return (ctx.factor * y_bar.to(low)).to(y_bar.dtype), None


@diseased(layout=r"inputs that are \w+ raised RuntimeError")
class ViewsItsInput(Scale):
    @staticmethod
    def forward(x, factor):
        return x.view(-1).clone().view(x.shape)


# derivative


@diseased(vjp=r"gradient .* differs")
class FactorForgotten(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        return y_bar.clone(), None


@diseased(vjp=r"gradient .* differs")
class SignFlipped(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        return -ctx.factor * y_bar, None


@diseased(vjp=r"differs in 1 of 6 elements")
class OffByAMillionth(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        x_bar = ctx.factor * y_bar
        error = torch.zeros_like(x_bar)
        if error.numel():
            error[(0,) * error.ndim] = 1e-6
        return x_bar * (1 + error), None


@diseased(jvp=r"tangent of the output .* differs", adjoint=r"not adjoint")
class JvpOfThePrimal(Scale):
    @staticmethod
    def jvp(ctx, x_dot, _):
        return x_dot.clone()


@diseased(jvp=r"dual tensors raised RuntimeError")
class ViewRefusesDualTensors(Scale):
    @staticmethod
    def forward(x, factor):
        return x.view_as(x)


@diseased(cotangent_linearity=r"combined cotangent")
class ClippingBackward(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        return ctx.factor * y_bar.clamp(-10, 10), None


@diseased(cotangent_linearity=r"elements$")
class ClippingInSingle(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        return (ctx.factor * y_bar.clamp(-10, 10).float()).to(y_bar.dtype), None


@diseased(cotangent_linearity=r"by no more than float32 rounds")
class SingleBackward(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        return (ctx.factor * y_bar.float() * 1.0001).to(y_bar.dtype), None


@diseased(second_order=r"second derivative|is None")
class DataInBackward(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        return ctx.factor * y_bar.data, None


@diseased(second_order=r"is None|raised")
class PenaltyDropped(Scale):
    @staticmethod
    @once_differentiable
    def backward(ctx, y_bar):
        return ctx.factor * y_bar, None


@diseased(second_order=r"second derivative with respect to .* is NaN")
class RootOfNothing(Scale):
    """Its gradient is right: what is added is the length of a vector that is 0, whose derivative is not a number."""

    @staticmethod
    def backward(ctx, y_bar):
        nothing = (y_bar - y_bar.detach()).flatten()[:1]
        return ctx.factor * y_bar + nothing.square().sum().sqrt(), None


# transforms


class CombinedForward(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.clone()

    @staticmethod
    def backward(ctx, y_bar):
        return ctx.factor * y_bar, None


class TupleArgument(Function):
    @staticmethod
    def forward(ctx, pair):
        return pair[0].clone()

    @staticmethod
    def backward(ctx, y_bar):
        return None


class NotAllowedInGraph(Scale):
    pass


class DroppedUnderCompileGrad(Function):
    @staticmethod
    def forward(x, factor):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, y_bar):
        return ctx.factor * y_bar, None


@diseased(export=r"gradient of `x` under torch.export|is None")
class DroppedUnderExport(Scale):
    @classmethod
    def apply(cls, x, factor):
        return Function.__dict__["apply"].__get__(None, cls)(x, factor)


@diseased(vmap=r"raised RuntimeError")
class NoVmapRule(Scale):
    generate_vmap_rule = False


@diseased(checkpoint=r"gradient of `x` under checkpoint differs")
class CountsItsCalls(Scale):
    calls = 0

    @staticmethod
    def setup_context(ctx, inputs, output):
        CountsItsCalls.calls += 1
        ctx.factor = inputs[1] * CountsItsCalls.calls


# protocol and effects


@diseased(retained_graph=r"second backward over one graph")
class DriftsWithEachBackward(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        ctx.factor *= 2
        return ctx.factor / 2 * y_bar, None


@diseased(freed=r"1 of 1 outputs outlive")
class OutputOnCtx(Scale):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]
        ctx.y = output


@diseased(cotangent_layout=r"a cotangent that is .* raised RuntimeError")
class ViewsItsCotangent(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        return (ctx.factor * y_bar.view(-1)).view(y_bar.shape), None


@diseased(keyword_call=r"raised TypeError")
class PositionalOnly(Scale):
    @classmethod
    def apply(cls, *args):
        return super().apply(*args)


@diseased(wrong_call=r"accepted")
class AcceptsAWrongCall(Scale):
    @classmethod
    def apply(cls, x, factor):
        return super().apply(x, float(factor))


@diseased(inputs_untouched=r"forward writes to `x`: its values have changed")
class WritesToItsInput(Scale):
    @staticmethod
    def forward(x, factor):
        y = x.clone()
        x.data.add_(1e-6)
        return y


@diseased(cotangents_untouched=r"backward writes to the cotangent")
class DividesTheCotangentInPlace(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        y_bar.data.mul_(ctx.factor)
        return y_bar, None


@diseased(aliasing=r"does not declare")
class UndeclaredView(Scale):
    @staticmethod
    def forward(x, factor):
        return x.view_as(x)


@diseased(ctx_clean=r"a tensor sits on ctx\.x")
class TensorOnCtx(Scale):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.x, ctx.factor = inputs


class UntrackedAlias(Scale):
    @staticmethod
    def forward(x, factor):
        return torch.from_numpy(x.detach().numpy())


class GradientNobodyNeeds(Product):
    @staticmethod
    def backward(ctx, y_bar):
        x, weight = ctx.saved_tensors
        return (y_bar * weight).sum_to_size(x.shape), (y_bar * x).sum_to_size(weight.shape)


class UnreducedBroadcast(Product):
    @staticmethod
    def backward(ctx, y_bar):
        x, weight = ctx.saved_tensors
        return y_bar * weight, y_bar * x


class GradientOfAnotherShape(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        x_bar = ctx.factor * y_bar
        return torch.stack((x_bar, x_bar), -1), None  # torch sums over a dimension in front, and refuses one behind


class SavesTenTimesAsMuch(Scale):
    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.factor = inputs
        ctx.save_for_backward(*(x.detach() * k for k in range(10)))


class KeepsMoreOnCtx(Scale):
    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.factor = inputs
        ctx.copies = [x.detach().clone(), x.detach().clone()]


class StaleExample(Scale):
    """Scale, with a docstring that the code has left behind.

    >>> x = torch.ones(2, requires_grad=True)
    >>> Scale.apply(x, 3.0).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """


torch.compiler.allow_in_graph(CombinedForward)
enter("combined_forward", SCALE.for_(CombinedForward.apply, name="x"), func_grad=r"raised", vmap=r"raised")
enter(
    "tuple_argument",
    SCALE.for_(lambda x, factor: TupleArgument.apply((x, factor)), name="x"),
    vjp=r"gradient of .* is None",
)
enter(
    "jvp_not_allowed_in_graph",
    SCALE.for_(NotAllowedInGraph.apply, name="x"),
    compile=r"raised Unsupported",
    compile_jvp=r"tangent of the output under torch.compile of torch.func.jvp differs",
)
enter(
    "dropped_under_compile_grad",
    SCALE.for_(DroppedUnderCompileGrad.apply, name="x"),
    compile_grad=r"under torch.compile of torch.func.grad differs",
)
enter(
    "untracked_alias",
    replace(SCALE.for_(UntrackedAlias.apply, name="x"), effects=Effects(view_of="x")),
    aliasing=r"autograd does not know it",
)
enter(
    "gradient_nobody_needs",
    PRODUCT.for_(GradientNobodyNeeds.apply, name="x"),
    needs_input_grad=r"where none is asked for",
)
enter(
    "gradient_of_another_shape",
    SCALE.for_(GradientOfAnotherShape.apply, name="x"),
    vjp=r"returned an invalid gradient at index 0",
)
enter(
    "unreduced_broadcast", PRODUCT.for_(UnreducedBroadcast.apply, name="x"), raw_returns=r"and torch sums it silently"
)
ONE_COPY = Saved(text="a tensor of the shape of `x`", bytes=lambda x, factor: x.nbytes)
enter(
    "saves_ten_times_as_much",
    replace(SCALE.for_(SavesTenTimesAsMuch.apply, name="x"), saved=ONE_COPY),
    saved_bytes=r"480 bytes are kept for backward, and the spec declares at most 48",
)
enter(
    "keeps_more_on_ctx",
    replace(SCALE.for_(KeepsMoreOnCtx.apply, name="x"), saved=ONE_COPY),
    saved_bytes=r"96 bytes are kept for backward, and the spec declares at most 48",
)
enter(
    "formula_of_another_function",
    replace(SCALE, formula=Formula(primal="x", surrogate="x / factor")),
    formula=r"does not compute the surrogate",
)
enter(
    "data_in_the_surrogate",
    replace(SCALE, surrogate=lambda x, factor: factor * x.data * x),
    surrogate=r"not its numerical one",
)
enter("stale_example", replace(SCALE, documented=(StaleExample,)), examples=r"does not print what it says")
enter("declares_a_zero_gradient", replace(SCALE, zero_gradient=("x",)), vjp=r"declared to be zero")
