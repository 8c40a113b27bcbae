"""More modules broken on purpose: each for one thing that a law of modules finds, and that no other specimen shows."""

from typing import Any

import torch
from torch import nn

from gradspec_lab.specimens.modules import DISEASED, Net, diseased

__all__ = ["DISEASED"]  # where the decorator enters them


# evaluation


@diseased(evaluation_mode=r"second evaluation of `output 0` differs")
class CountsItsEvaluations(Net):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return super().forward(x) * (1 + 1e-6 * self.calls)


# state and copies


@diseased(state_dict=r"loading a published checkpoint raised RuntimeError")
class ExpectsAPrefix(Net):
    def load_state_dict(self, state_dict, strict=True):
        return super().load_state_dict({k.removeprefix("conv."): v for k, v in state_dict.items()}, strict)


@diseased(state_dict=r"loading takes keys out of the dictionary of its caller")
class EmptiesTheDictionary(Net):
    def load_state_dict(self, state_dict, strict=True):
        given = dict(state_dict)
        state_dict.clear()
        return super().load_state_dict(given, strict)


@diseased(state_dict=r"the state holds 1 keys that are not in the contract")
class SavesAScratchBuffer(Net):
    def __init__(self, classes):
        super().__init__(classes)
        self.register_buffer("scratch", torch.zeros(1))


class _CopiesByHand(Net):
    """Makes a copy as its author thinks one is made."""

    def __init__(self, classes):
        super().__init__(classes)
        self.kept: dict[str, Any] = {"scale": 1.0, "offset": torch.zeros(4, 1, 1)}

    def features(self, x):
        return super().features(x) * self.kept["scale"] + self.kept["offset"].to(x)

    def __deepcopy__(self, memo):
        twin = type(self)(self.out.out_features).to(self.out.weight).eval()
        twin.load_state_dict(self.state_dict())
        return twin


@diseased(copies=r"copy\.deepcopy: evaluation of the copy of `output 0` differs")
class CopyForgetsASetting(_CopiesByHand):
    def __init__(self, classes):
        super().__init__(classes)
        self.kept["scale"] = 2.0

    def __deepcopy__(self, memo):
        twin = super().__deepcopy__(memo)
        twin.kept = {**self.kept, "scale": 1.0}
        return twin


@diseased(copies=r"copy\.deepcopy: what is done to the copy is done to the original")
class CopyMovesWhatItShares(_CopiesByHand):
    def __deepcopy__(self, memo):
        twin = super().__deepcopy__(memo)
        twin.kept = self.kept
        twin.register_buffer("offset", self.kept["offset"])
        return twin


# gradients


@diseased(gradient_flow=r"the output has no graph")
class ForwardWithoutAGraph(Net):
    @torch.no_grad()
    def forward(self, x):
        return super().forward(x)


@diseased(frozen=("conv.weight",), gradient_flow=r"`conv\.weight` gets a gradient, though the spec calls it frozen")
class FrozenInWordsAlone(Net):
    pass


@diseased(gradient_flow=r"the gradient of `conv\.weight` is not finite")
class RootAtZero(Net):
    def features(self, x):
        h = super().features(x)
        return h + (0 * h).sqrt()


@diseased(gradient_flow=r"the gradient of `conv\.weight` is zero in each of \d draws")
class RoundsItsFeatures(Net):
    def features(self, x):
        return super().features(x).round()


# transforms and numbers


@diseased(module_compile=r"torch\.compile \(\w+\): of `output 0` differs")
class AnotherSignWhereItIsCompiled(Net):
    def features(self, x):
        h = super().features(x)
        return -h if torch.compiler.is_compiling() else h


@diseased(module_compile=r"torch\.compile \(\w+\): state of `bn\.\w+` differs")
class KeepsNoStatisticsWhereItIsCompiled(Net):
    def features(self, x):
        if not (self.training and torch.compiler.is_compiling()):
            return super().features(x)
        return torch.relu(nn.functional.batch_norm(self.conv(x), None, None, self.bn.weight, self.bn.bias, True))


@diseased(module_export=r"torch\.export: of `output 0` differs")
class TwiceAsMuchWhereItIsExported(Net):
    def forward(self, x):
        return super().forward(x) * (2 if torch.compiler.is_exporting() else 1)


@diseased(module_precision=r"has another dtype")
class AnswersInDouble(Net):
    def forward(self, x):
        return super().forward(x).double()


@diseased(channels_last=r"channels-last of `output 0` differs")
class ReadsMemoryInOrder(Net):
    def features(self, x):
        h = super().features(x)
        _, channels, height, width = h.shape
        return h.as_strided(h.shape, (channels * height * width, height * width, width, 1))
