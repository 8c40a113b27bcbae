"""Modules that are right in one process, and wrong where ranks share a batch; and sound ones."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import nn

from gradspec.spec import Make, ModuleCase, ModuleSpec, ModuleSupports
from gradspec_lab.specimens.diseased import Disease, Specimens
from gradspec_lab.specimens.modules import NET

__all__ = ["DISEASED", "HONEST"]


class Layers(nn.Module):
    """Two linear layers: the sound twin of the sick ones.

    >>> Layers(2)(torch.ones(4, 3)).shape
    torch.Size([4, 2])
    """

    def __init__(self, classes):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.second = nn.Linear(4, classes)

    def features(self, x):
        return torch.tanh(self.first(x))

    def forward(self, x):
        return self.second(self.features(x))


def _cases(make: Make) -> Iterator[ModuleCase]:
    yield ModuleCase(name="rows", args=(2,), inputs=(make(4, 3),), output=(2,))
    yield ModuleCase(name="odd rows", args=(2,), inputs=(make(5, 3),), output=(2,))


LAYERS = ModuleSpec(
    name="layers",
    module=Layers,
    cases=_cases,
    wrt=("x",),
    data_parallel=("ddp", "fsdp2"),
    supports=ModuleSupports.all(),
)
HONEST = (LAYERS, replace(NET, name="net_on_ranks", documented=(), data_parallel=("ddp", "fsdp2")))
DISEASED = Specimens()


def diseased(**caught_by: str):
    """Enter a sick variant of Layers, under the name of its disease."""

    def enter(cls):
        name = "".join(f"_{c.lower()}" if c.isupper() else c for c in cls.__name__).lstrip("_")
        DISEASED[name] = Disease(spec=LAYERS.for_(cls, name=name), caught_by=caught_by)
        return cls

    return enter


class _MeanOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h):
        return h.clone()

    @staticmethod
    def backward(ctx, h_bar):
        ranks = torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1
        return h_bar / ranks


@diseased(
    ddp=r"gradient under ddp of `first\.\w+` \(rank 0, call 1\) differs",
    fsdp2=r"gradient under fsdp2 of `first\.\w+` \(rank 0, call 1\) differs",
)
class DividesByTheRanks(Layers):
    def features(self, x):
        return _MeanOverRanks.apply(super().features(x))


@diseased(ddp=r"gradient under ddp of `\w+\.\w+` \(rank 0, call 2\) differs")
class KeepsACenterOfItsRank(Layers):
    def __init__(self, classes):
        super().__init__(classes)
        self.register_buffer("center", torch.zeros(4))

    def features(self, x):
        h = super().features(x) * (1 + self.center)
        self.center.copy_(h.detach().mean(0))
        return h


@diseased(ddp=r"gradient under ddp of `\w+\.\w+` \(rank 0, call 1\) differs")
class CentersOverItsBatch(Layers):
    def features(self, x):
        h = super().features(x)
        return h - h.mean(0)


@diseased(ddp=r"ddp on rank 0 raised RuntimeError: Expected to have finished reduction")
class LeavesOutAParameter(Layers):
    def __init__(self, classes):
        super().__init__(classes)
        self.unused = nn.Linear(2, 2)


@diseased(fsdp2=r"fsdp2 on rank 0 raised RuntimeError: .*mixed torch\.Tensor and DTensor")
class ReadsTheWeightOfAChild(Layers):
    def forward(self, x):
        return nn.functional.linear(self.features(x), self.second.weight, self.second.bias)
