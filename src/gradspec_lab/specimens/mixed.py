"""Functions that show what the laws of transforms and of the protocol see: sound ones, and their sick variants."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from gradspec.spec import Case, FunctionSpec, Make, Supports
from gradspec_lab.specimens.diseased import DroppedUnderCompileGrad, diseased, diseased_as, enter
from gradspec_lab.specimens.honest import CUBE, SCALE, Cube, Scale


@torch.compiler.allow_in_graph
class MatrixProduct(Function):
    """The product of two matrices, in the dtype of its arguments under autocast too."""

    generate_vmap_rule = True

    @classmethod
    def apply(cls, x, w):
        return x @ w if torch.compiler.is_exporting() else super().apply(x, w)

    @staticmethod
    def forward(x, w):
        with torch.autocast(x.device.type, enabled=False):
            return x @ w

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, y_bar):
        x, w = ctx.saved_tensors
        return (
            y_bar @ w.mT if ctx.needs_input_grad[0] else None,
            x.mT @ y_bar if ctx.needs_input_grad[1] else None,
        )

    @staticmethod
    def jvp(ctx, x_dot, w_dot):
        x, w = ctx.saved_tensors
        return (0 if x_dot is None else x_dot @ w) + (0 if w_dot is None else x @ w_dot)


@torch.compiler.allow_in_graph
class Multiples(Function):
    """Twice and three times x; a cotangent that does not come is not made."""

    generate_vmap_rule = True

    @classmethod
    def apply(cls, x):
        return (2 * x, 3 * x) if torch.compiler.is_exporting() else super().apply(x)

    @staticmethod
    def forward(x):
        return 2 * x, 3 * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, y_bar, z_bar):
        terms = [factor * bar for factor, bar in ((2, y_bar), (3, z_bar)) if bar is not None]
        return sum(terms) if terms else None

    @staticmethod
    def jvp(ctx, x_dot):
        return 2 * x_dot, 3 * x_dot


class Refusal(Function):
    """The identity on a gradient; its own backward raises, whichever tensor asks for it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x_bar, *origins):
        return x_bar.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, *_):
        raise RuntimeError("CubeOnce promises first derivatives only")


@torch.compiler.allow_in_graph
class CubeOnce(Cube):
    """Cube, with a second derivative that is refused."""

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        with torch.no_grad():
            x_bar = 3 * x**2 * y_bar
        return Refusal.apply(x_bar, x, y_bar)


class CheckedOnTheCpu(Scale):
    """Scale, with a check of values that is made where nothing waits for them."""

    @staticmethod
    def forward(x, factor):
        if type(x) is Tensor and x.device.type == "cpu" and not bool(x.isfinite().all()):
            raise ValueError("x is not finite")
        return x.clone()


torch.compiler.allow_in_graph(CheckedOnTheCpu)


def _matrix_cases(make: Make) -> Iterator[Case]:
    yield Case(name="matrices", args=(make(2, 3), make(3, 4)))


def _vectors(make: Make) -> Iterator[Case]:
    yield Case(name="vector", args=(make(4),))


MATRIX_PRODUCT = FunctionSpec(
    name="matrix_product",
    function=MatrixProduct.apply,
    primal=lambda x, w: x @ w,
    surrogate=lambda x, w: x @ w,
    wrt=("x", "w"),
    cases=_matrix_cases,
    supports=Supports.all(),
)
MULTIPLES = FunctionSpec(
    name="multiples",
    function=Multiples.apply,
    primal=lambda x: (2 * x, 3 * x),
    surrogate=lambda x: (2 * x, 3 * x),
    wrt=("x",),
    cases=_vectors,
    supports=Supports.all(),
)
CUBE_ONCE = replace(
    CUBE.for_(CubeOnce.apply, name="cube_once"),
    supports=Supports.all(double_backward=False),
)
CHECKED = replace(
    SCALE.for_(CheckedOnTheCpu.apply, name="checked_on_the_cpu"),
    supports=Supports.all(vmap=False, compile_vmap=False),
)
MIXED = (MATRIX_PRODUCT, MULTIPLES, CUBE_ONCE, CHECKED)


class DroppedUnderCompileVmap(DroppedUnderCompileGrad):
    generate_vmap_rule = True


enter(
    "dropped_under_compile_vmap",
    SCALE.for_(DroppedUnderCompileVmap.apply, name="x"),
    compile_vmap=r"gradient of `x` under torch.compile of torch.vmap differs",
)


@diseased(fake=r"raised DataDependentOutputException")
class BranchesOnAValue(Scale):
    @staticmethod
    def forward(x, factor):
        return x.clone() if x.sum() > 0 else x + 0


@torch.library.custom_op("gradspec_specimens::copied", mutates_args=())
def copied(x: Tensor) -> Tensor:
    """Copy x."""
    return x.clone()


@copied.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(x.shape, dtype=torch.float32)


@diseased(fake=r"output 0 is another kind of tensor")
class WrongFakeKernel(Scale):
    @staticmethod
    def forward(x, factor):
        return copied(x)


@diseased_as(MATRIX_PRODUCT, autocast=r"raised RuntimeError")
class MixesDtypesUnderAutocast(MatrixProduct):
    @staticmethod
    def forward(x, w):
        return x @ w


@diseased_as(MATRIX_PRODUCT, autocast=r"raised AttributeError")
class CustomFwdWithSetupContext(MatrixProduct):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu")
    def forward(x, w):
        return x @ w

    backward = staticmethod(torch.amp.custom_bwd(MatrixProduct.backward, device_type="cpu"))


@diseased(autocast=r"output 0 under autocast (is less accurate|has another dtype)")
class RoundsToHalfUnderAutocast(Scale):
    @staticmethod
    def forward(x, factor):
        return x.bfloat16().to(x.dtype) if torch.is_autocast_enabled("cpu") else x.clone()


@diseased(undefined_cotangent=r"backward without a cotangent raised TypeError")
class NeedsItsCotangent(Scale):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.set_materialize_grads(False)
        ctx.factor = inputs[1]


@diseased_as(MULTIPLES, undefined_cotangent=r"raised TypeError")
class CrashesOnAnUnusedOutput(Multiples):
    @staticmethod
    def backward(ctx, y_bar, z_bar):
        return 2 * y_bar + 3 * z_bar


@diseased_as(MULTIPLES, undefined_cotangent=r"gradient from output 1 alone .*differs|is None")
class ForgetsTheSecondOutput(Multiples):
    @staticmethod
    def backward(ctx, y_bar, z_bar):
        return None if y_bar is None else 2 * y_bar + (0 if z_bar is None else 3 * z_bar)


@diseased_as(CUBE_ONCE, first_order_only=r"silently")
class PenaltySilentlyDropped(Cube):
    @staticmethod
    @once_differentiable
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * y_bar


@diseased(no_host_read=r"forward reads .*_local_scalar_dense \(mixed.py:\d+, in forward")
class ReadsTheLargestElement(Scale):
    @staticmethod
    def forward(x, factor):
        return x + 0 * x.sum().item()


@diseased(no_host_read=r"backward reads .*tolist \(mixed.py:\d+, in backward")
class ListsItsCotangent(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        y_bar.tolist()
        return ctx.factor * y_bar, None


@diseased(no_host_read=r"backward reads .*aten\.\w+ \(mixed.py:\d+, in backward")
class CountsWithAMask(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        return ctx.factor * y_bar + 0 * y_bar[y_bar > 0].sum(), None


@diseased(parity=r"gradient of `x` on cuda differs from that on cpu")
class WrongOnCuda(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        return (2 if y_bar.is_cuda else 1) * ctx.factor * y_bar, None
