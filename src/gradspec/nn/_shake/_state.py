"""The keys of the published checkpoints of Shake-Shake networks, from the arguments of each class."""

from __future__ import annotations

from itertools import pairwise

from gradspec.spec import StateContract

#: What a batch normalisation keeps.
NORM = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")


def shortcut(in_ch: int, out_ch: int, stride: int) -> StateContract:
    """Two convolutions without bias, then a batch norm."""
    return StateContract(keys=("conv1.weight", "conv2.weight", *_norm("bn")))


def block(in_ch: int, out_ch: int, stride: int = 1) -> StateContract:
    """Two branches of two 3 x 3 convolutions; published blocks of equal widths hold a shortcut that nothing calls."""
    branches = (*_branch("branch1", (1, 4), (2, 5)), *_branch("branch2", (1, 4), (2, 5)))
    if in_ch != out_ch:
        return StateContract(keys=(*_under("shortcut", shortcut(in_ch, out_ch, stride).keys), *branches))
    half = (out_ch // 2, in_ch, 1, 1)
    unused: dict[str, tuple[int, ...]] = {"conv1.weight": half, "conv2.weight": half}
    unused |= {key: () if key.endswith("tracked") else (out_ch,) for key in _norm("bn")}
    return StateContract(keys=branches, dropped={f"shortcut.{key}": shape for key, shape in unused.items()})


def bottle_neck(in_ch: int, mid_ch: int, out_ch: int, cardinary: int, stride: int = 1) -> StateContract:
    """Two branches of three convolutions; the published block of equal widths has no shortcut."""
    branches = (*_branch("branch1", (0, 3, 6), (1, 4, 7)), *_branch("branch2", (0, 3, 6), (1, 4, 7)))
    own = () if in_ch == out_ch else _under("shortcut", shortcut(in_ch, out_ch, stride).keys)
    return StateContract(keys=(*own, *branches))


def resnet(depth: int, w_base: int, label: int) -> StateContract:
    """A convolution, three layers of blocks, a linear layer."""
    widths = (16, w_base, 2 * w_base, 4 * w_base)
    return _network((depth - 2) // 6, [(block(a, b), block(b, b)) for a, b in pairwise(widths)])


def resnext(depth: int, w_base: int, cardinary: int, label: int) -> StateContract:
    """A convolution, three layers of blocks, a linear layer."""
    layers = [(bottle_neck(a, 1, b, 1), bottle_neck(b, 1, b, 1)) for a, b in pairwise((64, 256, 512, 1024))]
    return _network((depth - 2) // 9, layers)


def _network(blocks: int, layers: list[tuple[StateContract, StateContract]]) -> StateContract:
    keys = ["c_in.weight", "c_in.bias"]
    dropped: dict[str, tuple[int, ...]] = {}
    for number, (first, other) in enumerate(layers, start=1):
        for place, contract in enumerate((first, *[other] * (blocks - 1))):
            prefix = f"layer{number}.{place}"
            keys += _under(prefix, contract.keys)
            dropped |= {f"{prefix}.{key}": shape for key, shape in contract.dropped.items()}
    return StateContract(keys=(*keys, "fc_out.weight", "fc_out.bias"), dropped=dropped)


def _branch(name: str, convolutions: tuple[int, ...], norms: tuple[int, ...]) -> tuple[str, ...]:
    weights = [f"{name}.{place}.weight" for place in convolutions]
    return (*weights, *(key for place in norms for key in _norm(f"{name}.{place}")))


def _norm(name: str) -> tuple[str, ...]:
    return _under(name, NORM)


def _under(prefix: str, keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{prefix}.{key}" for key in keys)
