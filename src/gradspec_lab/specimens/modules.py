"""Modules that are sound, and modules broken on purpose, each named after its disease."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import nn

from gradspec.spec import Make, Misuse, ModuleCase, ModuleSpec, ModuleSupports, StateContract
from gradspec_lab.specimens.diseased import Disease, Specimens


class Net(nn.Module):
    """A convolution, a norm, a dropout and a linear layer: the sound twin of the diseased ones.

    >>> Net(3)(torch.ones(2, 3, 4, 4)).shape
    torch.Size([2, 3])
    """

    def __init__(self, classes):
        super().__init__()
        if not isinstance(classes, int):
            raise TypeError(f"classes is {classes!r}, expected an integer")
        self.conv = nn.Conv2d(3, 4, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(4)
        self.out = nn.Linear(4, classes)

    def features(self, x):
        if x.ndim != 4:
            raise ValueError(f"x has {x.ndim} dimensions, expected 4")
        return torch.relu(self.bn(self.conv(x)))

    def forward(self, x):
        h = nn.functional.dropout(self.features(x), 0.2, self.training)
        return self.out(h.mean((2, 3)))


def _cases(make: Make) -> Iterator[ModuleCase]:
    yield ModuleCase(name="images", args=(3,), inputs=(make(4, 3, 8, 8),), output=(3,))
    yield ModuleCase(name="odd images", args=(2,), inputs=(make(3, 3, 5, 7),), output=(2,), training=True)


def _misuses(make: Make) -> Iterator[Misuse]:
    yield Misuse(case=ModuleCase(name="text", args=("3",)), error=TypeError, match="classes is '3'")
    yield Misuse(
        case=ModuleCase(name="no batch", args=(3,), inputs=(make(3, 8, 8),), training=True),
        error=ValueError,
        match="3 dimensions",
    )


def _state(classes):
    norm = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    return StateContract(keys=("conv.weight", *(f"bn.{key}" for key in norm), "out.weight", "out.bias"))


NET = ModuleSpec(
    name="net",
    module=Net,
    cases=_cases,
    raises=_misuses,
    state=_state,
    wrt=("x",),
    documented=(Net,),
    supports=ModuleSupports.all(),
)
HONEST = (NET,)
DISEASED = Specimens()


def diseased(*, frozen: tuple[str, ...] = (), **caught_by: str):
    """Enter a sick variant of Net, under the name of its disease; the spec calls some of its parameters frozen."""

    def enter(cls):
        name = "".join(f"_{c.lower()}" if c.isupper() else c for c in cls.__name__).lstrip("_")
        DISEASED[name] = Disease(spec=replace(NET.for_(cls, name=name), frozen=frozen), caught_by=caught_by)
        return cls

    return enter


# the batch


@diseased(batch_size=r"a batch of 1 gives an output of another shape")
class HardWiredHead(Net):
    def forward(self, x):
        return self.out(nn.functional.avg_pool2d(self.features(x), 4).permute(0, 2, 3, 1).reshape(-1, 4))


@diseased(batch_independence=r"row 0 alone differs")
class BatchStatisticsInEvaluation(Net):
    def forward(self, x):
        h = self.features(x)
        return self.out((h - h.mean(0)).mean((2, 3)))


# evaluation


class _RandomBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h):
        return h.clone()

    @staticmethod
    def backward(ctx, h_bar):
        return h_bar * torch.rand_like(h_bar)


@diseased(evaluation_mode=r"backward draws random numbers in evaluation")
class DrawsInBackwardInEvaluation(Net):
    def features(self, x):
        return _RandomBackward.apply(super().features(x))


@diseased(evaluation_mode=r"forward writes to `bn\.running_mean` in evaluation: its values have changed")
class MovesInEvaluation(Net):
    def features(self, x):
        h = super().features(x)
        if not self.training:
            self.bn.running_mean += 1e-6
        return h


# state and copies


@diseased(state_dict=r"the same state gives another evaluation")
class StateOutsideTheState(Net):
    def __init__(self, classes):
        super().__init__(classes)
        self.register_buffer("shift", torch.randn(4, 1, 1), persistent=False)

    def features(self, x):
        return super().features(x) + self.shift


@diseased(state_dict=r"the state has no `conv\.weight`")
class RenamedParameter(Net):
    def __init__(self, classes):
        super().__init__(classes)
        self.convolution = self.conv
        del self.conv

    def features(self, x):
        return torch.relu(self.bn(self.convolution(x)))


@diseased(state_dict=r"loads the unknown key `no_such_key` with strict=True")
class SwallowsAnyKey(Net):
    def load_state_dict(self, state_dict, strict=True):
        return super().load_state_dict({k: v for k, v in state_dict.items() if k in self.state_dict()}, strict)


@diseased(state_dict=r"`bn\.running_mean` is not what was loaded")
class NeverLoadsItsNorm(Net):
    def load_state_dict(self, state_dict, strict=True):
        return super().load_state_dict({**state_dict, "bn.running_mean": torch.zeros(4)}, strict)


@diseased(copies=r"copy\.deepcopy: `conv\.weight` of the copy is the memory of the original")
class CopySharesATensor(Net):
    def __deepcopy__(self, memo):
        twin = type(self)(self.out.out_features).to(self.out.weight.dtype).eval()
        twin.load_state_dict(self.state_dict())
        twin.conv = self.conv
        return twin


@diseased(copies=r"pickle raised")
class LambdaAsAttribute(Net):
    def __init__(self, classes):
        super().__init__(classes)
        self.activation = lambda h: h

    def features(self, x):
        return self.activation(super().features(x))


# gradients


@diseased(gradient_flow=r"no gradient reaches `unused\.weight`")
class DeadBranch(Net):
    def __init__(self, classes):
        super().__init__(classes)
        self.unused = nn.Linear(2, 2)


@diseased(gradient_flow=r"backward returns no gradient for `conv\.weight`, and the output moves with it")
class DetachedFeatures(Net):
    def features(self, x):
        return super().features(x).detach()


class _Uphill(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y):
        return y.clone()

    @staticmethod
    def backward(ctx, y_bar):
        return -y_bar


@diseased(gradient_flow=r"no step against the gradient lowers the loss")
class UphillGradient(Net):
    def forward(self, x):
        return _Uphill.apply(super().forward(x))


# state


class _Again(torch.autograd.Function):
    """Runs a block again in backward, and its normalisation with it."""

    @staticmethod
    def forward(ctx, block, x, *parameters):
        ctx.block = block
        ctx.save_for_backward(x)
        with torch.no_grad():
            return block(x)

    @staticmethod
    def backward(ctx, y_bar):
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            y = ctx.block(x)
        return None, *torch.autograd.grad(y, (x, *ctx.block.parameters()), y_bar)


@diseased(backward_state=r"backward writes to `bn\.running_mean`")
class MovesItsStatisticsTwice(Net):
    def features(self, x):
        return torch.relu(_Again.apply(self.bn, self.conv(x), *self.bn.parameters()))


# transforms and numbers


@diseased(functional_call=r"gradient of row 0 by torch\.vmap of `conv\.weight` differs")
class ReadsAParameterElsewhere(Net):
    def __init__(self, classes):
        super().__init__(classes)
        self.weights = [self.conv.weight]  # in a list, where functional_call does not see it

    def features(self, x):
        return torch.relu(self.bn(nn.functional.conv2d(x, self.weights[0], padding=1)))


@diseased(module_compile=r"raised \w+", module_export=r"raised \w+")
class DecidesByAValue(Net):
    def features(self, x):
        h = super().features(x)
        return h if h.sum().item() > 0 else -h


@diseased(module_precision=r"another dtype|raised RuntimeError")
class ConstantInDouble(Net):
    def features(self, x):
        return super().features(x) + torch.ones(4, 1, 1, dtype=torch.float64)


@diseased(module_precision=r"off by more than half of the digits")
class AddsAndSubtractsALargeNumber(Net):
    def forward(self, x):
        return super().forward(x) + 1000 - 1000


@diseased(channels_last=r"raised RuntimeError")
class ViewsItsFeatures(Net):
    def forward(self, x):
        h = self.features(x)
        return self.out(h.view(h.shape[0], -1).unflatten(1, (4, -1)).mean(2))
