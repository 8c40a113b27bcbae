"""Operators of `torch.library` that are sound, and operators broken on purpose, each named after its disease."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from gradspec.spec import Case, OperatorSpec, Supports
from gradspec_lab.specimens.diseased import Disease, Specimens

SPACE = "gradspec_specimens"
TWICE = replace(OperatorSpec.supports, double_backward=True)
EVERY_VMAP = replace(OperatorSpec.supports, double_backward=True, vmap=True)

# sound ones


def _cases(make):
    yield Case(name="matrix", args=(make(4, 3), 2.5))
    yield Case(name="empty", args=(make(0, 3), 2.5))
    yield Case(name="transposed", args=(make(3, 4).T, -0.5))


def _contiguous(x, factor):
    return (factor * x).contiguous()


def _contiguous_fake(x, factor):
    return x.new_empty(x.shape)


def _keep(ctx, inputs, output):
    ctx.factor = inputs[1]


def _backward(ctx, y_bar):
    return ctx.factor * y_bar, None


def _rule(info, in_dims, x, factor):
    (dim, _) = in_dims
    return _OPERATORS["scaled"](x.movedim(dim, 0), factor), 0


_OPERATORS = {}


def scaled(
    name,
    kernel=_contiguous,
    *,
    fake=_contiguous_fake,
    backward=_backward,
    setup=_keep,
    vmap=None,
    devices=None,
    **said,
):
    """Register a variant of `factor * x`, in contiguous memory, and return its spec."""
    schema = "(Tensor x, float factor) -> Tensor"
    operator = torch.library.custom_op(f"{SPACE}::{name}", kernel, mutates_args=(), schema=schema, device_types=devices)
    if fake is not None:
        operator.register_fake(fake)
    if backward is not None:
        operator.register_autograd(backward, setup_context=setup)
    if vmap is not None:
        operator.register_vmap(vmap)
        said.setdefault("supports", EVERY_VMAP)
    _OPERATORS[name] = operator
    said.setdefault("supports", TWICE)
    said = {"cases": _cases, "wrt": ("x",), "primal": lambda x, factor: factor * x, **said}
    return OperatorSpec(name=name, operator=f"{SPACE}::{name}", **said)


SCALED = scaled("scaled", vmap=_rule)
ROUNDED = scaled(
    "rounded",
    lambda x, factor: (factor * x).round().contiguous(),
    primal=lambda x, factor: (factor * x).round(),
    surrogate=lambda x, factor: factor * x,
)


@torch.library.custom_op(f"{SPACE}::averaged", mutates_args=("state",))
def averaged(x: Tensor, state: Tensor, momentum: float = 0.5) -> Tensor:
    state.lerp_(x.mean(0), momentum)
    return (x > state).sum()


@averaged.register_fake
def _(x, state, momentum=0.5):
    return x.new_empty((), dtype=torch.int64)


def _averages(x, state, momentum=0.5):
    moved = state.lerp(x.mean(0), momentum)
    return (x > moved).sum(), moved


def _averaged_cases(make):
    yield Case(name="a step", args=(make(4, 3), make(3)))
    yield Case(name="another momentum", args=(make(4, 3), make(3)), kwargs={"momentum": 0.25})


AVERAGED = OperatorSpec(name="averaged", operator=f"{SPACE}::averaged", primal=_averages, wrt=(), cases=_averaged_cases)


@torch.library.custom_op(f"{SPACE}::squared_into", mutates_args=("out",))
def squared_into(x: Tensor, out: Tensor) -> None:
    torch.mul(x, x, out=out)


@squared_into.register_fake
def _(x, out):
    return None


def _into_cases(make):
    yield Case(name="a matrix", args=(make(4, 3), make(4, 3)))


SQUARED_INTO = OperatorSpec(
    name="squared_into", operator=f"{SPACE}::squared_into", primal=lambda x, out: x * x, wrt=(), cases=_into_cases
)


@torch.library.custom_op(f"{SPACE}::weighed", mutates_args=())
def weighed(xs: list[Tensor], bias: Tensor | None = None, *, gain: float = 1.0) -> Tensor:
    total = gain * sum(xs)
    return (total if bias is None else total + bias).contiguous()


@weighed.register_fake
def _(xs, bias=None, *, gain=1.0):
    return xs[0].new_empty(xs[0].shape)


def _keep_weighed(ctx, inputs, keyword_only_inputs, output):
    ctx.count, ctx.gain = len(inputs[0]), keyword_only_inputs["gain"]
    ctx.wide = inputs[1] is not None


def _weighed_backward(ctx, y_bar):
    of_xs = [ctx.gain * y_bar if needed else None for needed in ctx.needs_input_grad[0]]
    of_bias = y_bar.sum(0) if ctx.wide and ctx.needs_input_grad[1] else None
    # Beside a list, torch counts only the arguments that are not at their defaults.
    return (of_xs, of_bias)[: len(ctx.needs_input_grad)]


weighed.register_autograd(_weighed_backward, setup_context=_keep_weighed)


def _weighs(xs, bias=None, *, gain=1.0):
    total = gain * sum(xs)
    return total if bias is None else total + bias


def _weighed_cases(make):
    yield Case(name="two", args=([make(4, 3), make(4, 3)],))
    yield Case(name="with a bias", args=([make(4, 3)], make(3)), kwargs={"gain": 0.5})


WEIGHED = OperatorSpec(
    name="weighed", operator=f"{SPACE}::weighed", primal=_weighs, wrt=("xs", "bias"), cases=_weighed_cases
)

HONEST = (SCALED, ROUNDED, AVERAGED, SQUARED_INTO, WEIGHED)

# diseased ones

DISEASED = Specimens()


def sick(spec, **caught_by):
    DISEASED[spec.name] = Disease(spec=spec, caught_by=caught_by)


def _memory(t):
    """Return the numbers of a tensor in the order of their memory, whatever its strides."""
    return torch.as_strided(t, t.shape, torch.empty(t.shape).stride()) if t.numel() else t


def _adds_a_little(x, factor):
    y = _contiguous(x, factor)
    x.add_(1e-9)
    return y


def _by_a_number(x, factor):
    return x.new_empty([int(n) for n in x.shape])


def _branches(x, factor):
    return x.new_empty(x.shape if x.sum() > 0 else x.shape[:1])


def _never_empty(x, factor):
    return x.new_empty([max(x.shape[0], 1), *x.shape[1:]]) if isinstance(x.shape[0], int) else x.new_empty(x.shape)


def _in_dimension_0(info, in_dims, x, factor):
    return _OPERATORS["operator_vmap_rule_of_the_first_dimension"](x, factor), 0


CONFIGURED = []


def _configured_cases(make):
    CONFIGURED.append(True)
    yield from _cases(make)


def _only_here(ctx, y_bar):
    return (ctx.factor if CONFIGURED else 0.0) * y_bar, None


sick(scaled("operator_gradient_off", backward=lambda ctx, y_bar: (1.7 * ctx.factor * y_bar, None)), vjp=r"differs")
sick(
    scaled(
        "operator_reads_a_cotangent_as_dense",
        backward=lambda ctx, y_bar: (ctx.factor * (_memory(y_bar) if y_bar.stride(-1) else y_bar), None),
        supports=Supports.eager(),
    ),
    cotangent_layout=r"transposed cotangent",
)
sick(scaled("undeclared_write", _adds_a_little), schema=r"writes to `x`", inputs_untouched=r"writes to `x`")
sick(scaled("fake_of_another_stride", fake=lambda x, factor: x.new_empty(x.shape[::-1]).mT), fake_kernel=r"strides")
sick(scaled("fake_keeps_strides", fake=lambda x, factor: torch.empty_like(x)), fake_kernel=r"transposed in memory")
sick(scaled("fake_of_another_dtype", fake=lambda x, factor: x.new_empty(x.shape).float()), fake_kernel=r"dtype")
sick(scaled("fake_is_never_empty", fake=_never_empty), fake_kernel=r"shape")
sick(scaled("fake_fixes_sizes", fake=_by_a_number), fake_kernel=r"fixes 2 of the sizes")
sick(scaled("fake_reads_a_value", fake=_branches), fake_kernel=r"asks for a value")
sick(scaled("no_fake_kernel", fake=None), kernels=r"no kernel is registered for fake tensors", opcheck=r"opcheck")
sick(
    replace(scaled("kernel_of_the_cpu_alone", devices="cpu"), devices=("cpu", "cuda")),
    kernels=r"no kernel is registered for cuda",
)
sick(
    scaled("operator_vmap_rule_of_the_first_dimension", vmap=_in_dimension_0),
    vmap=r"in dimension -1",
)
sick(
    scaled("configured_here_alone", backward=_only_here, cases=_configured_cases), exported_operator=r"gradient of `x`"
)


def _registered_for_cuda():
    library = torch.library.Library(SPACE, "FRAGMENT")
    library.define("gradient_on_cuda_alone(Tensor x, float factor) -> Tensor")
    library.impl("gradient_on_cuda_alone", lambda x, factor: torch.from_numpy(np.asarray(x) * factor), "CPU")
    library.impl("gradient_on_cuda_alone", lambda x, factor: x.new_empty(x.shape), "Meta")
    library.impl("gradient_on_cuda_alone", _contiguous, "AutogradCUDA")
    return library


_LIBRARY = _registered_for_cuda()
sick(
    OperatorSpec(
        name="gradient_on_cuda_alone",
        operator=f"{SPACE}::gradient_on_cuda_alone",
        primal=lambda x, factor: factor * x,
        wrt=("x",),
        cases=_cases,
    ),
    kernels=r"no gradient is registered on cpu",
)
_LIBRARY.define("returns_its_argument(Tensor x, float factor) -> Tensor")
_LIBRARY.impl("returns_its_argument", lambda x, factor: x, "CompositeExplicitAutograd")
sick(
    OperatorSpec(
        name="returns_its_argument",
        operator=f"{SPACE}::returns_its_argument",
        primal=lambda x, factor: x,
        wrt=(),
        cases=_cases,
    ),
    schema=r"output 0 shares memory with `x`",
)


@torch.library.custom_op(f"{SPACE}::forgets_to_write", mutates_args=("state",))
def forgets_to_write(x: Tensor, state: Tensor, momentum: float = 0.5) -> Tensor:
    moved = state.clone().lerp_(x.mean(0), momentum)
    return (x > moved).sum()


forgets_to_write.register_fake(lambda x, state, momentum=0.5: x.new_empty((), dtype=torch.int64))
sick(
    replace(AVERAGED, name="forgets_to_write", operator=f"{SPACE}::forgets_to_write"),
    schema=r"says that the operator writes to `state`, and it does not",
)
