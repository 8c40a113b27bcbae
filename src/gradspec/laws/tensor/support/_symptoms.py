"""The tests that show what is wrong with a gradient that differs, each with what it then says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from gradspec.law import HOLDS, Trial
from gradspec.laws.tensor.support._call import Inputs, differentiable, like, outputs, vjp
from gradspec.laws.tensor.support._compare import compare, describe
from gradspec.laws.tensor.support._reference import reference
from gradspec.laws.tensor.support._where_wrong import in_places, masked

#: How far aside a point is moved, in parts of its largest element, to leave a kink behind.
ASIDE = 1e-3


@dataclass(frozen=True)
class Wrong:
    """A gradient that differs from the surrogate's, at one point and for one cotangent."""

    trial: Trial
    inputs: Inputs
    name: str
    v: tuple[Tensor, ...]

    @cached_property
    def given(self) -> Mapping[str, Tensor | None]:
        """The gradients as the function gives them."""
        return vjp(self.trial.spec.function, self.inputs, self._v())

    @cached_property
    def right(self) -> Mapping[str, Tensor | None]:
        """The gradients of the surrogate."""
        return vjp(reference(self.trial.spec), self.inputs, self._v())

    @property
    def got(self) -> Tensor:
        """The gradient in question."""
        return _some(self.given[self.name])

    @property
    def expected(self) -> Tensor:
        """The gradient that it should be."""
        return _some(self.right[self.name])

    def is_right(self, inputs: Inputs) -> bool:
        """Whether the function has the right gradients for other arguments, and the same cotangent."""
        got, expected = (vjp(f, inputs, self._v()) for f in (self.trial.spec.function, reference(self.trial.spec)))
        return all(self.same(_some(got[name]), _some(expected[name])) for name in inputs.wrt)

    def same(self, one: Tensor, other: Tensor) -> bool:
        """Whether two tensors agree as the law asks it."""
        return compare(self.trial, "a gradient", one, other) is HOLDS

    def _v(self) -> tuple[Tensor, ...]:
        return tuple(t.clone() for t in self.v)  # the function may change it


def _ignores_the_cotangent(wrong: Wrong) -> str:
    twice = vjp(wrong.trial.spec.function, wrong.inputs, tuple(2 * t for t in wrong.v))[wrong.name]
    if wrong.got.isfinite().all() and wrong.got.any() and wrong.same(_some(twice), wrong.got):
        return "backward ignores its cotangent (twice the cotangent gives the same gradient): multiply by grad_output"
    return ""


def _of_forward(wrong: Wrong) -> str:
    plain = vjp(wrong.trial.spec.primal, wrong.inputs, wrong.v)[wrong.name]
    is_it = plain is not None and wrong.same(wrong.got, plain)
    return "it is the derivative of forward, where the spec's surrogate has another" if is_it else ""


def _exchanged(wrong: Wrong) -> str:
    mine = wrong.name
    for other in wrong.inputs.wrt:
        theirs, their_right = wrong.given[other], wrong.right[other]
        if other == mine or theirs is None or their_right is None or theirs.shape != wrong.got.shape:
            continue
        if wrong.same(wrong.got, their_right) and wrong.same(theirs, wrong.expected):
            return f"backward returns the gradients of `{mine}` and `{other}` in each other's place: mind the order"
    return ""


def _transposed(wrong: Wrong) -> str:
    is_it = wrong.got.ndim >= 2 and wrong.same(wrong.got, wrong.expected.mT)
    return "it is the transpose of the right gradient" if is_it else ""


def _beside_a_kink(wrong: Wrong) -> str:
    if not all(wrong.is_right(_aside(wrong.inputs, seed)) for seed in range(3)):
        return ""
    value = wrong.inputs.values[wrong.name]
    why = "its elements tie" if _repeats(value) else "a bound, a zero, or arguments that meet"
    is_nan = "0/0 or 0 * inf at a kink" if not bool(wrong.got.isfinite().all()) else "wrong at a kink alone"
    return f"{is_nan} ({why}): right a little aside of this `{wrong.name}`"


def _with_a_negative_number(wrong: Wrong) -> str:
    return next((said for said, counted in counted_from_the_front(wrong.inputs) if wrong.is_right(counted)), "")


def counted_from_the_front(inputs: Inputs) -> Iterator[tuple[str, Inputs]]:
    """Yield the arguments with a negative number, as of a dimension, counted from the front, and what it shows."""
    ndim = max((value.ndim for value in inputs.values.values() if isinstance(value, Tensor)), default=0)
    for name, value in inputs.values.items():
        if type(value) is int and -ndim <= value < 0:
            said = f"right with {name}={value + ndim} in place of {name}={value}: a negative number is miscounted"
            yield said, Inputs({**inputs.values, name: value + ndim}, inputs.wrt)


def _with_an_index_that_repeats(wrong: Wrong) -> str:
    for name, value in wrong.inputs.values.items():
        if not isinstance(value, Tensor) or differentiable(value) or value.dtype == torch.bool:
            continue
        distinct = torch.arange(value.numel(), dtype=value.dtype, device=value.device).reshape(value.shape)
        others = Inputs({**wrong.inputs.values, name: distinct}, wrong.inputs.wrt)
        if _repeats(value) and wrong.is_right(others):
            return f"right where no index in `{name}` repeats: x[i] += ... keeps one of them, index_add_ adds them all"
    return ""


def _at_the_output(wrong: Wrong) -> str:
    (y, *_) = outputs(wrong.trial.spec.primal(*wrong.inputs.args()))
    value = wrong.inputs.values[wrong.name]
    if describe(y) != describe(value):
        return ""
    there = vjp(reference(wrong.trial.spec), Inputs({**wrong.inputs.values, wrong.name: y}, wrong.inputs.wrt), wrong.v)
    is_it = wrong.same(wrong.got, _some(there[wrong.name]))
    return f"it is the derivative at the output: the output is kept where `{wrong.name}` is meant" if is_it else ""


def _of_a_part(wrong: Wrong) -> str:
    for place, which in ((0, "first"), (-1, "last")):
        part = tuple(torch.zeros_like(t) for t in wrong.v)
        for t, whole in zip(part, wrong.v, strict=True):
            t[place] = whole[place]
        alone = vjp(reference(wrong.trial.spec), wrong.inputs, part)[wrong.name]
        if wrong.same(wrong.got, _some(alone)):
            return f"it is the gradient of the {which} sample of the batch alone: sum over the batch"
    return ""


def _in_some_places(wrong: Wrong) -> str:
    return in_places(wrong.got, wrong.expected) or masked(wrong.got, wrong.expected)


#: In this order: what needs the fewest words to be mended comes first.
TESTS: tuple[Callable[[Wrong], str], ...] = (
    _ignores_the_cotangent,
    _exchanged,
    _of_forward,
    _transposed,
    _with_a_negative_number,
    _with_an_index_that_repeats,
    _beside_a_kink,
    _in_some_places,
    _at_the_output,
    _of_a_part,
)


def _aside(inputs: Inputs, seed: int) -> Inputs:
    """Return the arguments, each of its elements moved a little: ties and zeros end, and the neighbourhood stays."""
    moved = dict(inputs.values)
    for name, noise in zip(inputs.wrt, like(inputs.tensors(), seed + 1), strict=True):
        value = moved[name]
        size = float(value.detach().abs().max()) if value.numel() else 0.0
        moved[name] = value.detach() + noise * (ASIDE / 9 * (size or 1.0))
    return Inputs(moved, inputs.wrt)


def _repeats(tensor: Tensor) -> bool:
    return len(set(tensor.flatten().tolist())) < tensor.numel()


def _some(gradient: Tensor | None) -> Tensor:
    if gradient is None:
        raise ValueError("there is no gradient to look at")
    return gradient
