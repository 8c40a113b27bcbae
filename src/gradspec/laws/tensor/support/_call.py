"""How a law calls a function: tensors of its own, leaves where a gradient is asked for, readable cotangents."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor

from gradspec._heartbeat import beat
from gradspec.law import Trial
from gradspec.laws.tensor.support._dense import dense, with_all_numbers
from gradspec.spec import Case
from gradspec.spec._fault import SpecFaultError as SpecFaultError

#: The dtypes in which the rounding of float32 shows.
WIDE = (torch.float64, torch.complex128)


class StandInError(SpecFaultError):
    """What a law compares with could not be computed, in an audit: the function itself gives it, and raised there."""


def differentiable(value: object) -> bool:
    """Whether a gradient can flow to a value."""
    # Nothing is computed in 8 bits, so that no gradient is: such a tensor is stored, and read into another dtype.
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex()) and value.itemsize > 1


def fresh(value: Any, *, device: str | None = None) -> Any:
    """Return a copy of a tensor with its strides (0 for expanded dimensions) in memory of its own, or of a device.

    What lies between its numbers is copied too: a function that reads it does not read what was never written.
    """
    if not isinstance(value, Tensor):
        return value
    value = value.detach()
    if value.layout != torch.strided or value.is_contiguous():
        return value.to(device, copy=True)
    value = value.resolve_conj().resolve_neg()
    span = 1 + sum((n - 1) * stride for n, stride in zip(value.shape, value.stride(), strict=True))
    return value.as_strided((span,), (1,)).to(device, copy=True).as_strided(value.shape, value.stride(), 0)


def bound(signature: inspect.Signature, case: Case) -> dict[str, Any]:
    """Return the arguments of a case by name, defaults included."""
    given = signature.bind(*case.args, **case.kwargs)
    given.apply_defaults()
    return dict(given.arguments)


@dataclass(frozen=True)
class Inputs:
    """The arguments of a case by name, and which of them are differentiated."""

    values: Mapping[str, Any]
    wrt: tuple[str, ...]

    @classmethod
    def of(cls, trial: Trial) -> Inputs:
        """Bind the case to the argument names of the spec."""
        values = bound(_signature(trial.spec.primal), trial.case)
        for name in trial.spec.wrt:
            value = values.get(name)
            if not isinstance(value, Tensor | int | float | complex | str | None):
                kind = type(value).__name__
                raise SpecFaultError(f"wrt names `{name}`, which is a {kind}: make its tensors arguments of their own")
        wrt = tuple(name for name in trial.spec.wrt if differentiable(values.get(name)))
        for name in trial.spec.wrt if not wrt else ():
            if isinstance(value := values.get(name), Tensor) and value.is_floating_point():
                kind = str(value.dtype).removeprefix("torch.")
                raise SpecFaultError(f"wrt names `{name}`, which is of {kind}: no law judges a gradient in 8 bits")
        return cls(values, wrt)

    def leaves(self) -> dict[str, Tensor]:
        """Return new leaves for the arguments that are differentiated."""
        return {name: fresh(self.values[name]).requires_grad_() for name in self.wrt}

    def args(self, given: Mapping[str, Any] | None = None) -> tuple[Any, ...]:
        """Return the positional arguments, copies but for the given ones."""
        given = given or {}
        return tuple(given[name] if name in given else fresh(value) for name, value in self.values.items())

    def scaled(self, factors: Sequence[float]) -> Inputs:
        """Return the same arguments, those that are differentiated times the factors, in turn."""
        scaled = {name: self.values[name] * factors[k % len(factors)] for k, name in enumerate(self.wrt)}
        return Inputs({**self.values, **scaled}, self.wrt)

    def redrawn(self, seed: int, *, times: float = 1) -> Inputs:
        """Return other numbers of the same signs for those that are differentiated, so many times as large."""
        others = tuple(times * t for t in resembling(self.tensors(), seed))
        return Inputs({**self.values, **dict(zip(self.wrt, others, strict=True))}, self.wrt)

    def narrowed(self, *, size: int, length: int, start: int = 0) -> Inputs:
        """Return the arguments with fewer elements along each dimension of a size."""
        part = partial(narrowed, size=size, length=length, start=start)
        return Inputs({name: part(value) for name, value in self.values.items()}, self.wrt)

    def closed(self, function: Callable[..., Any]) -> Callable[..., tuple[Tensor, ...]]:
        """Return the function of only the differentiated arguments; the others do not move."""

        def call(*tensors: Tensor) -> tuple[Tensor, ...]:
            return outputs(function(*self.args(dict(zip(self.wrt, tensors, strict=True)))))

        return call

    def tensors(self) -> tuple[Tensor, ...]:
        """Return copies of the differentiated arguments, in order, each with memory of its own for every element.

        torch refuses a tangent of an expanded tensor whatever the function.
        """
        return tuple(self.values[name].detach().clone() for name in self.wrt)


@lru_cache
def _signature(primal: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(primal)


def outputs(y: Any) -> tuple[Any, ...]:
    """Return what a function returned as a tuple, sparse tensors with a number for each element."""
    beat()
    return tuple(map(with_all_numbers, y if isinstance(y, tuple | list) else (y,)))


def each_alone(tensors: Sequence[Tensor]) -> Iterator[tuple[Tensor, ...]]:
    """Yield each of some tensors by itself: a copy of it at its place, and zeros at those of the others."""
    for place, alone in enumerate(tensors):
        yield tuple(alone.clone() if k == place else torch.zeros_like(t) for k, t in enumerate(tensors))


def like(tensors: tuple[Tensor, ...], seed: int) -> tuple[Tensor, ...]:
    """Return random signed tensors of the same shapes and dtypes: -8.995 to 8.995 by hundredths, none of them 0."""
    generator = torch.Generator().manual_seed(seed)

    def draw(shape: torch.Size) -> Tensor:
        number = torch.randint(-900, 900, shape, generator=generator, dtype=torch.float64)
        return number.add_(0.5).div_(100)  # a half, so that none is 0

    def one(tensor: Tensor) -> Tensor:
        value = torch.complex(draw(tensor.shape), draw(tensor.shape)) if tensor.is_complex() else draw(tensor.shape)
        return value.to(tensor.device, tensor.dtype)

    return tuple(one(tensor) for tensor in tensors)


def resembling(tensors: tuple[Tensor, ...], seed: int) -> tuple[Tensor, ...]:
    """Return other tensors of the same sign and size: each number times one between a half and 1, drawn by a seed.

    So they lie where the case lies, in the domain of the function. Integers and booleans stay. What is symmetric, or
    positive definite, is so again: A becomes D A D with a diagonal D.
    """
    drawn = like(tuple(t.abs() if t.is_complex() else t for t in tensors), seed)
    return tuple(
        t.detach() * _factors(t, 0.5 + d.abs() / 18) if differentiable(t) else fresh(t)
        for t, d in zip(tensors, drawn, strict=True)
    )


def _factors(tensor: Tensor, drawn: Tensor) -> Tensor:
    is_square = tensor.layout is torch.strided and tensor.ndim > 1 and tensor.shape[-1] == tensor.shape[-2] > 1
    if not is_square or not torch.equal(tensor, tensor.mH):
        return drawn
    row = drawn[..., 0, :].sqrt()
    return row[..., None] * row[..., None, :]


def whole(tensor: Tensor) -> Tensor:
    """Return a tensor rounded to whole numbers, in both parts where it is complex; integers and booleans stay."""
    if tensor.is_complex():
        return torch.complex(tensor.real.round(), tensor.imag.round())
    return tensor.round() if tensor.is_floating_point() else tensor


def cotangents(trial: Trial, y: tuple[Tensor, ...]) -> Iterator[tuple[str, tuple[Tensor, ...]]]:
    """Yield cotangents for outputs: random signed ones, a one-hot one, and ones, each with its name.

    Every other random one is half of the one before, backwards: drawing takes longer than anything else here.
    """
    for k in range(0, trial.profile.directions, 2):
        drawn = like(y, trial.seed + k)
        # Now, for a function may change the first; an integer has no half, nor a gradient.
        flipped = tuple(t.flip(list(range(t.ndim))) for t in drawn)
        backwards = tuple(t.mul_(0.5) if differentiable(t) else t for t in flipped)
        yield "random" if k == 0 else "another random", drawn
        if k + 1 < trial.profile.directions:
            yield "another random", backwards
    if y[0].numel():
        hot = torch.zeros_like(y[0], memory_format=torch.contiguous_format)
        hot.view(-1).select(0, -1).fill_(1)
        yield "one-hot", (hot, *(torch.zeros_like(t) for t in y[1:]))
    yield "ones", tuple(torch.ones_like(t, memory_format=torch.contiguous_format) for t in y)


def vjp(
    function: Callable[..., Any], inputs: Inputs, v: tuple[Tensor, ...] | None = None, *, seed: int = 0
) -> dict[str, Tensor | None]:
    """Return the gradients of the differentiated arguments for a cotangent (a random one unless given)."""
    leaves = inputs.leaves()
    y = outputs(function(*inputs.args(leaves)))
    return gradients(y, leaves, v or like(y, seed))


def gradients(
    y: tuple[Tensor, ...], leaves: Mapping[str, Tensor], v: tuple[Tensor, ...], *, copied: bool = True, **how: Any
) -> dict[str, Tensor | None]:
    """Return the gradients of the leaves, None where no graph reaches them; of sparse ones, the dense values.

    Backward is handed copies of the cotangents, unless told otherwise: it may write to them, or resize them, and what
    comes next has none of that. A copy of one that is differentiated is not a leaf, as in a network: torch lets nobody
    write to a leaf.
    """
    pairs = [(t, w) for t, w in zip(y, v, strict=True) if t.requires_grad]
    if not pairs:
        return dict.fromkeys(leaves)
    given = [(w.clone() if w.requires_grad else fresh(w)) if copied else w for _, w in pairs]
    ends, starts = [t for t, _ in pairs], list(leaves.values())

    def run() -> tuple[Tensor | None, ...]:
        return torch.autograd.grad(ends, starts, given, allow_unused=True, **how)

    got = or_added(run, ends, starts, given, **how)
    beat()
    return {name: dense(gradient) for name, gradient in zip(leaves, got, strict=True)}


def or_added(
    run: Callable[[], tuple[Tensor | None, ...]],
    y: Sequence[Tensor],
    x: Sequence[Tensor],
    v: Sequence[Tensor],
    *,
    create_graph: bool = False,
    **how: Any,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of a pass; of what takes `backward()` only, as a reentrant checkpoint, what that adds.

    Args:
        run: the pass.
        y: what is differentiated.
        x: leaves.
        v: the cotangents.
        create_graph: whether the pass is differentiated: what `backward()` adds is not.
        how: options of `backward()`.
    """
    try:
        return run()
    except RuntimeError as error:
        if "compatible with .grad()" not in str(error) or create_graph:
            raise
    before = [leaf.grad for leaf in x]
    try:
        for leaf in x:
            leaf.grad = None
        torch.autograd.backward(y, v, **how)
        return tuple(leaf.grad for leaf in x)
    finally:
        for leaf, own in zip(x, before, strict=True):
            leaf.grad = own


def pushforward(
    function: Callable[..., Any], x: tuple[Tensor, ...], u: tuple[Tensor, ...]
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return the value of a function at x and its derivative along u, by `torch.func.jvp`."""
    y, y_dot = torch.func.jvp(function, x, u)[:2]
    return outputs(y), outputs(y_dot)


def narrowed(value: Any, *, size: int, length: int, start: int = 0) -> Any:
    """Return an argument with fewer elements along each dimension of a size."""
    for dim in range(value.ndim) if isinstance(value, Tensor) else ():
        if value.shape[dim] == size:
            value = value.narrow(dim, start, length)
    return value
