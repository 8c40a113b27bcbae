"""Functions with state: a sound one, and one for each way to move state wrongly."""

import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import torch
from torch.autograd import Function, Variable
from torch.utils.weak import WeakIdKeyDictionary

from gradspec.spec import Case, Effects, FunctionSpec, Make, Supports
from gradspec_lab.specimens.diseased import diseased_as
from gradspec_lab.specimens.honest import CUBE, PRODUCT, SCALE, Cube, Product, Scale


@torch.compiler.allow_in_graph
class Tally(Function):
    """Multiply x by a running total of the columns; the total gains each x once its backward pass is over."""

    @classmethod
    def apply(cls, x, total):
        if torch.compiler.is_compiling():
            raise RuntimeError("Tally cannot be compiled or exported: the program would move no total")
        if torch._C._functorch.is_functorch_wrapped_tensor(x):
            raise RuntimeError("Tally cannot be transformed by torch.func, which keeps no tensor of the caller")
        return super().apply(x, total)

    @staticmethod
    def forward(x, total):
        return x * total

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, total = inputs
        ctx.save_for_backward(x, total.clone())
        ctx.total = weakref.ref(total)
        ctx.has_moved = False

    @staticmethod
    def backward(ctx, y_bar):
        x, held = ctx.saved_tensors
        at_the_end(lambda: move(ctx, x))
        return y_bar * held, None


def at_the_end(callback):
    Variable._execution_engine.queue_callback(callback)


def move(ctx, x, share=1.0, again=False):
    total = ctx.total()  # None once the caller has let it go: then nobody can see it move
    if total is not None and (again or not ctx.has_moved):
        ctx.has_moved = True
        with torch.no_grad():
            total.add_(share * x.sum(0))


def _cases(make: Make) -> Iterator[Case]:
    yield Case(name="rows", args=(make(2, 3), make(3)))
    yield Case(name="one row", args=(make(1, 3), make(3)))


REFUSED = (
    "forward_mode",
    "func_grad",
    "vmap",
    "compile",
    "compile_grad",
    "compile_vmap",
    "compile_jvp",
    "dynamic_shapes",
    "compiled_autograd",
    "export",
)
TALLY = FunctionSpec(
    name="tally",
    function=Tally.apply,
    primal=lambda x, total: x * total,
    surrogate=lambda x, total: x * total,
    wrt=("x",),
    cases=_cases,
    effects=Effects(writes=("total",)),
    state_after=lambda x, total: {"total": total + x.sum(0)},
    supports=Supports.all(**dict.fromkeys(REFUSED, False)),
)


@diseased_as(TALLY, state_transition=r"state `total` after a forward pass differs")
class StateMovedInForward(Tally):
    @staticmethod
    def forward(x, total):
        y = x * total
        total.add_(x.sum(0))
        return y

    @staticmethod
    def backward(ctx, y_bar):
        x, held = ctx.saved_tensors
        return y_bar * (held - x.sum(0)), None


@diseased_as(TALLY, state_transition=r"after a forward and a backward pass differs")
class StateMovedToAWrongValue(Tally):
    @staticmethod
    def backward(ctx, y_bar):
        x, held = ctx.saved_tensors
        at_the_end(lambda: move(ctx, x, share=1 + 1e-9))
        return y_bar * held, None


@diseased_as(TALLY, state_transition=r"after a second backward pass over a retained graph differs")
class StateMovedWithEachBackward(Tally):
    @staticmethod
    def backward(ctx, y_bar):
        x, held = ctx.saved_tensors
        at_the_end(lambda: move(ctx, x, again=True))
        return y_bar * held, None


@diseased_as(TALLY, state_transition=r"after a forward and a backward pass differs")
class StateMovedTwice(Tally):
    @staticmethod
    def backward(ctx, y_bar):
        x, held = ctx.saved_tensors
        at_the_end(lambda: (move(ctx, x), move(ctx, x, again=True)))
        return y_bar * held, None


@diseased_as(TALLY, state_transition=r"after a backward pass that raises before its end differs")
class StateMovedBeforeTheEnd(Tally):
    @staticmethod
    def backward(ctx, y_bar):
        x, held = ctx.saved_tensors
        move(ctx, x)
        return y_bar * held, None


@diseased_as(TALLY, state_transition=r"after a forward pass under no_grad differs")
class StateMovedInEvaluation(Tally):
    @classmethod
    def apply(cls, x, total):
        if not torch.is_grad_enabled():
            total.add_(x.sum(0))
        return super().apply(x, total)


@diseased_as(TALLY, state_transition=r"after a backward pass and the backward pass of that differs")
class StateMovedByADoubleBackward(Tally):
    @staticmethod
    def backward(ctx, y_bar):
        x, held = ctx.saved_tensors
        at_the_end(lambda: move(ctx, x))
        x_bar = y_bar * held
        if x_bar.requires_grad:
            x_bar.register_hook(lambda _: move(ctx, x, again=True))
        return x_bar, None


@diseased_as(TALLY, state_transition=r"after two forward passes.* differs")
class StateOfTheForwardPassWrittenBack(Tally):
    @staticmethod
    def backward(ctx, y_bar):
        x, held = ctx.saved_tensors
        total = ctx.total()
        if total is not None and not ctx.has_moved:
            at_the_end(lambda: total.copy_(held + x.detach().sum(0)))
            at_the_end(lambda: setattr(ctx, "has_moved", True))
        return y_bar * held, None


BANK = torch.zeros(3)
CALLS = torch.zeros(())


@diseased_as(
    SCALE, declared_writes=r"backward writes to a tensor float32\[3\] that is no argument.*aten\.add_ \(stateful"
)
class BankUpdatedInBackward(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        BANK.data.add_(1)
        return ctx.factor * y_bar, None


@diseased_as(SCALE, declared_writes=r"forward writes to a tensor float32\[\] that is no argument")
class CounterMovedInForward(Scale):
    @staticmethod
    def forward(x, factor):
        CALLS.add_(1)
        return x.clone()


MEAN, VARIANCE = torch.zeros(3).double(), torch.ones(3).double()


@diseased_as(SCALE, declared_writes=r"aten\.\w*batch_norm")
class BatchStatisticsMoved(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        if y_bar.ndim == 2 and len(y_bar) > 1:
            torch.nn.functional.batch_norm(y_bar, MEAN, VARIANCE, training=True)
        return ctx.factor * y_bar, None


STATEFUL = (TALLY, replace(TALLY, name="tally_of_no_rows", cases=lambda make: iter((_empty(make),))))


def _empty(make: Make) -> Case:
    return Case(name="empty", args=(make(0, 3), make(3)))


@diseased_as(CUBE, interleaved=r"gradient of the (first|second) of two pending calls .* differs")
class KeptOnTheClass(Cube):
    """Keep the input on the class, where the next call puts its own."""

    @staticmethod
    def setup_context(ctx, inputs, output):
        KeptOnTheClass.x = inputs[0].detach()

    @staticmethod
    def backward(ctx, y_bar):
        return 3 * KeptOnTheClass.x**2 * y_bar


WORKSPACES: dict[torch.Size, torch.Tensor] = {}


@diseased_as(CUBE, interleaved=r"of the (first|second) of two pending calls raised RuntimeError: one of the variables")
class SavesItsWorkspace(Cube):
    """Save a workspace that the next call writes to, of which torch tells."""

    @staticmethod
    def forward(x):
        WORKSPACES.setdefault(x.shape, torch.empty_like(x)).copy_(x)
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(WORKSPACES[inputs[0].shape])


def _two_factors(make: Make) -> Iterator[Case]:
    yield Case(name="half", args=(make(2, 3), 0.5))
    yield Case(name="double", args=(make(2, 3), 2.0))


@diseased_as(replace(SCALE, cases=_two_factors), earlier_calls=r"gradient, other calls before backward, of `x` differs")
class FactorOnTheClass(Scale):
    """Keep the factor on the class, where a call with another one puts that before the backward pass."""

    @staticmethod
    def setup_context(ctx, inputs, output):
        FactorOnTheClass.factor = inputs[1]

    @staticmethod
    def backward(ctx, y_bar):
        return FactorOnTheClass.factor * y_bar, None

    @staticmethod
    def jvp(ctx, x_dot, _):
        return FactorOnTheClass.factor * x_dot


@diseased_as(SCALE, freed=r"`x` outlives the call and its graph")
class LogsItsArgument(Scale):
    """Append the argument to a list, for a plot that nobody draws."""

    seen: ClassVar[list[torch.Tensor]] = []

    @staticmethod
    def setup_context(ctx, inputs, output):
        LogsItsArgument.seen.append(inputs[0])
        ctx.factor = inputs[1]


@diseased_as(PRODUCT, earlier_calls=r"gradient after other calls of `x` differs")
class CachedBySize(Product):
    """Keep the second factor by the size of the first one: a later call with another factor gets the earlier one."""

    factors: ClassVar[dict[torch.Size, torch.Tensor]] = {}

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, weight = inputs
        ctx.save_for_backward(x, CachedBySize.factors.setdefault(x.shape, weight.detach()))
        ctx.weight_shape = weight.shape

    @staticmethod
    def backward(ctx, y_bar):
        x, weight = ctx.saved_tensors
        return (y_bar * weight).sum_to_size(x.shape), (y_bar * x).sum_to_size(ctx.weight_shape)


@diseased_as(PRODUCT, earlier_calls=r"value after other calls differs")
class ValueCachedBySize(Product):
    """Keep the product by the size of the first factor, for a layer whose weight does not change."""

    products: ClassVar[dict[torch.Size, torch.Tensor]] = {}

    @staticmethod
    def forward(x, weight):
        return ValueCachedBySize.products.setdefault(x.shape, x.detach() * weight.detach()).clone()


@diseased_as(PRODUCT, earlier_calls=r"gradient, with other numbers in the same memory, of `x` differs")
class PreparedOnce(Product):
    """Keep a copy of the second factor for each tensor that it was given as, also where that is written to."""

    prepared: ClassVar[WeakIdKeyDictionary] = WeakIdKeyDictionary()

    @staticmethod
    def forward(x, weight):
        return x * PreparedOnce.kept(weight)

    @classmethod
    def kept(cls, weight):
        if weight not in cls.prepared:
            cls.prepared[weight] = weight.detach().clone()
        return cls.prepared[weight]

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, weight = inputs
        ctx.save_for_backward(x, PreparedOnce.kept(weight))
        ctx.weight_shape = weight.shape

    @staticmethod
    def backward(ctx, y_bar):
        x, weight = ctx.saved_tensors
        return (y_bar * weight).sum_to_size(x.shape), (y_bar * x).sum_to_size(ctx.weight_shape)
