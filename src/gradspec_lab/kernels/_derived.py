"""Our judge: the bound that a kernel's reference gives, with what the kernel declares of itself, and without."""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _get_current_dispatch_mode

from gradspec.laws.tensor.support._bound import Bound, Units
from gradspec.laws.tensor.support._call import differentiable, resembling
from gradspec.laws.tensor.support._farther import SOUND, apart, is_far
from gradspec_lab.kernels._judges import Verdicts
from gradspec_lab.kernels._kernel import Measured, at_stored, derive, upcast


def derived(kernel: Measured, args: tuple[Any, ...], cotangents: tuple[Tensor, ...]) -> Verdicts:
    """Judge a kernel of which nothing is declared: every operation of its reference may round to the inputs' dtype."""
    return _judged(kernel, args, cotangents, is_declared=False)


def declared(kernel: Measured, args: tuple[Any, ...], cotangents: tuple[Tensor, ...]) -> Verdicts:
    """Judge a kernel by what it declares: in which dtype it adds up, and which of its results it rounds on the way."""
    return _judged(kernel, args, cotangents, is_declared=True)


def _judged(kernel: Measured, args: tuple[Any, ...], cotangents: tuple[Tensor, ...], *, is_declared: bool) -> Verdicts:
    dtypes = {value.dtype for value in args if isinstance(value, Tensor) and value.is_floating_point()}
    dtype = max(dtypes, key=lambda kind: torch.finfo(kind).eps)
    units = Units.of(torch.float32 if is_declared else dtype, kernel.accumulate or dtype)
    generator = torch.Generator().manual_seed(len(kernel.name))
    names = list(kernel.exact)

    def round_place(place: str, value: Tensor) -> Tensor:
        if not is_declared or place not in kernel.stores or _get_current_dispatch_mode() is None:
            return value
        error = torch.rand(value.shape, generator=generator, dtype=torch.float64) * 2 - 1
        return value * (1 + torch.finfo(dtype).eps / 2 * error)

    def compute() -> list[Tensor]:
        with at_stored(round_place):
            found = derive(kernel.reference, kernel, upcast(args), upcast(cotangents))
        return [found[name] for name in names]

    bound = Bound(compute, units, seed=0)
    found: Verdicts = {}
    for place, name in enumerate(names):
        got = kernel.results[name]
        limits = bound.limits(place, got.dtype)
        if limits is None:
            found[name] = (True, "empty")
            continue
        wrong = limits.wrong(got)
        gain = limits.gain(got.double())
        error = (got.double() - limits.right).abs()
        share = float((error / limits.allowed).nan_to_num(nan=float("inf")).max()) if bool(wrong.any()) else 0.0
        is_right = not bool(wrong.any()) and gain == 1.0
        is_far = is_right and not is_declared and _is_farther(kernel, args, cotangents, name)
        found[name] = (is_right and not is_far, f"{share:.3g} of the bound, gain {gain:.6g}")
    return found


def _is_farther(kernel: Measured, args: tuple[Any, ...], cotangents: tuple[Tensor, ...], name: str) -> bool:
    """Whether a result in a half type is by far farther off than the reference in that type, for other numbers too."""
    found = apart(kernel.results[name], kernel.low[name], kernel.exact[name])
    if found is None or not is_far(*found) or found[1] * torch.finfo(kernel.results[name].dtype).eps / 2 >= SOUND:
        return False
    moved = iter(resembling(tuple(one for one in args if differentiable(one)), 1))
    other = tuple(next(moved) if differentiable(one) else one for one in args)
    got, low = (derive(call, kernel, other, cotangents)[name] for call in (kernel.call, kernel.reference))
    exact = derive(kernel.reference, kernel, upcast(other), upcast(cotangents))[name]
    elsewhere = apart(got, low, exact)
    return elsewhere is not None and is_far(*elsewhere)
