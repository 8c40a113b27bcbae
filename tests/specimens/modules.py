"""Modules that are sound, and modules broken on purpose, each named after its disease."""

from collections.abc import Iterator

import torch
from torch import nn

from gradspec.module_spec import ModuleCase, ModuleSpec, StateContract
from gradspec.spec import Make, Misuse
from specimens.diseased import Disease


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


NET = ModuleSpec(name="net", module=Net, cases=_cases, raises=_misuses, state=_state, wrt=("x",), documents=(Net,))
HONEST = (NET,)
DISEASED: dict[str, Disease] = {}


def diseased(**caught_by: str):
    """Enter a sick variant of Net, under the name of its disease."""

    def enter(cls):
        name = "".join(f"_{c.lower()}" if c.isupper() else c for c in cls.__name__).lstrip("_")
        DISEASED[name] = Disease(spec=NET.for_(cls, name=name), caught_by=caught_by)
        return cls

    return enter


@diseased(batch_size=r"a batch of 1 gives an output of another shape")
class HardWiredHead(Net):
    def forward(self, x):
        return self.out(nn.functional.avg_pool2d(self.features(x), 4).view(-1, 4))
