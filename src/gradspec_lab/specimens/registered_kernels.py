"""Operators of which a kernel is wrong for a layout, a device or a dtype, or for the compiler that asks it."""

from dataclasses import replace
from functools import lru_cache

import torch
from torch import Tensor

from gradspec.spec import Case, OperatorSpec
from gradspec_lab.specimens.diseased import Disease, Specimens
from gradspec_lab.specimens.operators import AVERAGED, SPACE, _averages, _memory, scaled
from gradspec_lab.specimens.registrations import VIEW, matrices, phase, registered

DISEASED = Specimens()


def sick(spec, **caught_by):
    DISEASED[spec.name] = Disease(spec=spec, caught_by=caught_by)


def _images(make):
    yield Case(name="images", args=(make(2, 3, 4, 5), 2.5))


sick(
    scaled("images_in_order_of_memory", lambda x, factor: (factor * _memory(x)).contiguous(), cases=_images),
    layout=r"value \(transposed inputs\) differs",
)
sick(phase("autocast_rounds_a_phase", torch.bfloat16), autocast=r"output 0 under autocast is less accurate")
sick(
    scaled("kernel_of_an_undeclared_device", devices=("cpu", "cuda")),
    kernels=r"registered for cuda, which the spec does not promise",
)
sick(
    registered(
        "view_that_is_a_copy",
        "(Tensor(a) x) -> Tensor(a)",
        lambda x: x[:, 0],
        matrices,
        said=VIEW,
        CompositeImplicitAutograd=lambda x: x.select(1, 0).clone(),
    ),
    schema=r"says that output 0 shares memory with `x`, and it does not",
)

# what is said to a compiler


sick(
    scaled("fake_of_another_offset", fake=lambda x, factor: x.new_empty(x.numel() + 1)[1:].view(x.shape)),
    fake_kernel=r"storage offset",
)


@lru_cache
def _planned(shape):
    """Return the shape that a kernel plans for, once for each: what may change has no hash."""
    return shape


sick(
    scaled("fake_remembers_its_plan", fake=lambda x, factor: x.new_empty(_planned(tuple(x.shape)))),
    fake_kernel=r"with sizes that may change, on fake tensors it raises TypeError: unhashable",
)


@torch.library.custom_op(f"{SPACE}::scaled_backward", mutates_args=())
def scaled_backward(y_bar: Tensor, factor: float) -> Tensor:
    return (factor * y_bar).contiguous()


scaled_backward.register_fake(lambda y_bar, factor: y_bar.new_empty(y_bar.shape[::-1]).mT)
sick(
    scaled(
        "fake_gradient_of_another_stride",
        backward=lambda ctx, y_bar: (scaled_backward(y_bar, ctx.factor), None),
        supports=replace(OperatorSpec.supports, double_backward=None),
    ),
    fake_kernel=r"the gradient of `x` has other strides",
)


# torch writes back for an operator whatever it declares to write, unless its author has registered a rule.
@torch.library.custom_op(f"{SPACE}::averaged_elsewhere", mutates_args=())
def averaged_elsewhere(x: Tensor, state: Tensor, momentum: float) -> tuple[Tensor, Tensor]:
    return _averages(x, state, momentum)


averaged_elsewhere.register_fake(
    lambda x, state, momentum: (x.new_empty((), dtype=torch.int64), torch.empty_like(state))
)


def _averaging(x, state, momentum=0.5):
    state.lerp_(x.detach().mean(0), momentum)
    return (x > state).sum()


def _never_written_back(x, state, momentum=0.5):
    x, state = torch._from_functional_tensor(x), torch._from_functional_tensor(state)
    with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.Functionalize)):
        y, _ = averaged_elsewhere(x, state, momentum)
    return torch._to_functional_tensor(y)


sick(
    registered(
        "write_lost_under_compile",
        "(Tensor x, Tensor(a!) state, float momentum=0.5) -> Tensor",
        lambda x, state, momentum=0.5: _averages(x, state, momentum),
        AVERAGED.cases,
        wrt=(),
        CompositeExplicitAutograd=_averaging,
        Meta=lambda x, state, momentum=0.5: x.new_empty((), dtype=torch.int64),
        Functionalize=_never_written_back,
    ),
    compile=r"value under torch.compile \(aot_eager\) differs",
    exported_operator=r"value 1 in a new process \(case 'a step', taken apart\) differs",
)
