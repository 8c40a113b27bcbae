"""The truth about the kernels, by plain comparison in wide dtypes: sound ones agree, wrong ones do not."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gradspec_lab.kernels._kernel import Kernel, derive, random_cotangents, upcast
from gradspec_lab.kernels.wrong import Occasion, Pair


def distance(result: Tensor, exact: Tensor) -> float:
    """The largest difference, in terms of the largest exact number; infinite if one has a NaN."""
    if not exact.numel():
        return 0.0
    size = exact.double().abs().max().clamp(min=1e-30)
    gap = ((result.double() - exact.double()).abs().max() / size).item()
    return gap if gap == gap else float("inf")


def results(kernel: Kernel, occasion: Occasion, cotangents: Any) -> list[dict[str, Tensor]]:
    """The outputs and gradients of each call of an occasion. Memory that nobody writes holds NaN."""

    def call(*args: Any) -> Any:
        if occasion.before is not None:
            occasion.before(kernel.call, args)
        return kernel.call(*args)

    memory: Any = torch.utils.deterministic
    filled = memory.fill_uninitialized_memory
    was = torch.are_deterministic_algorithms_enabled()
    memory.fill_uninitialized_memory = True
    torch.use_deterministic_algorithms(True)
    try:
        return [derive(call, kernel, occasion.args, cotangents) for _ in range(occasion.repeats)]
    finally:
        torch.use_deterministic_algorithms(was)
        memory.fill_uninitialized_memory = filled


def distances(
    pair: Pair, make: Callable[[torch.dtype, torch.Generator], Occasion], dtype: torch.dtype, seed: int = 0
) -> tuple[dict[str, float], dict[str, float]]:
    """How far the wrong kernel and its twin are from the reference in float64, on one occasion."""
    generator = torch.Generator().manual_seed(seed)
    occasion = make(dtype, generator)
    kept: list[tuple[Tensor, ...]] = []

    def cotangents(outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        if not kept:
            kept.append(occasion.cotangents or random_cotangents(generator)(outputs))
        return kept[0]

    twin = results(pair.twin, occasion, cotangents)
    wrong = results(pair.wrong, occasion, cotangents)
    exact = derive(pair.twin.reference, pair.twin, upcast(occasion.args), upcast(kept[0]))
    farthest = [
        {name: max(distance(result[name], exact[name]) for result in several) for name in exact}
        for several in (wrong, twin)
    ]
    return farthest[0], farthest[1]


def gaps(kernel: Kernel) -> dict[str, float]:
    """How far a kernel is from its map in float64, on its friendly shape, in the widest dtype that it takes."""
    dtype = max(kernel.dtypes, key=lambda dtype: -torch.finfo(dtype).eps)
    generator = torch.Generator().manual_seed(0)
    args = kernel.make(kernel.shapes[0], dtype, "plain", generator)
    kept: list[tuple[Tensor, ...]] = []

    def cotangents(outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        kept.append(random_cotangents(generator)(outputs))
        return kept[0]

    result = derive(kernel.call, kernel, args, cotangents)
    exact = derive(kernel.reference, kernel, upcast(args), upcast(kept[0]))
    return {
        name: distance(result[name], exact[name]) if result[name].shape == exact[name].shape else float("inf")
        for name in exact
    }
