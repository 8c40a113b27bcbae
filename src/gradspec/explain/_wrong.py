"""A gradient that differs from the surrogate's, and what it is asked to show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from torch import Tensor

from gradspec.law import HOLDS, Trial
from gradspec.laws.tensor.support._bounded import Bounded
from gradspec.laws.tensor.support._call import Inputs, differentiable, like, outputs, vjp
from gradspec.laws.tensor.support._compare import allowed, compare
from gradspec.laws.tensor.support._made_up import can_be_made
from gradspec.laws.tensor.support._reference import reference
from gradspec.laws.tensor.support._rounding import FAR

#: How many times as many operations as it has a call may take in which something stands in for something else.
_TIMES = 4
#: How many times as many elements a result may have there, and how many in any case.
_LARGER, _ELEMENTS = 64, 4096
#: What a solver's tolerance or a float32 on the way may leave, in parts of the largest element.
NEARLY = 1e-6
#: Under which name the evidence of a factor has what mends it, in words.
MENDED = "mended"
#: Under which name it is noted that a search came so near.
NEAR = "nearly"


@dataclass(frozen=True)
class Wrong:
    """A gradient that differs from the surrogate's, at one point and for one cotangent."""

    trial: Trial
    inputs: Inputs
    name: str
    v: tuple[Tensor, ...]
    #: What a long search has found, for the same question on other numbers: whether it holds there is asked first.
    found: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def given(self) -> Mapping[str, Tensor | None]:
        """The gradients as the function gives them."""
        return vjp(self.trial.spec.function, self.inputs, self._v())

    @cached_property
    def right(self) -> Mapping[str, Tensor | None]:
        """The gradients of the surrogate."""
        return vjp(reference(self.trial.spec), self.inputs, self._v())

    @cached_property
    def values(self) -> Mapping[str, Tensor]:
        """The tensors that a wrong gradient may be computed from: arguments and outputs, by name."""
        given = {f"`{name}`": t.detach() for name, t in self.inputs.values.items() if differentiable(t)}
        y = outputs(self.trial.spec.primal(*self.inputs.args()))
        named = {"the output" if len(y) == 1 else f"output {k}": t.detach() for k, t in enumerate(y)}
        return given | {name: t for name, t in named.items() if differentiable(t)}

    @cached_property
    def _counted(self) -> Bounded:
        """What a call and its backward take."""
        counted = Bounded()
        with counted:
            vjp(self.trial.spec.function, self.inputs, self._v())
        return counted

    def bounded(self) -> Bounded:
        """Return what bounds them with something else in them, such as a size: to some times as much."""
        counted = self._counted
        return Bounded(_TIMES * counted.count, most_elements=max(_ELEMENTS, _LARGER * counted.elements))

    def redrawn(self, seed: int, *, moved: bool, times: float = 1) -> Wrong:
        """Return the same question for other cotangents, and for other arguments of the same signs."""
        inputs = self.inputs
        if moved:
            inputs = inputs.redrawn(seed, times=times)
        return Wrong(self.trial, inputs, self.name, like(self.v, seed), self.found)

    @property
    def got(self) -> Tensor:
        """The gradient in question."""
        return some(self.given[self.name])

    @property
    def expected(self) -> Tensor:
        """The gradient that it should be."""
        return some(self.right[self.name])

    def is_right(self, inputs: Inputs, v: tuple[Tensor, ...] | None = None) -> bool:
        """Whether the function has the right gradients for other arguments, and the same or another cotangent."""
        mine, theirs = (tuple(t.clone() for t in (v or self.v)) for _ in range(2))
        got = vjp(self.trial.spec.function, inputs, mine)
        expected = vjp(reference(self.trial.spec), inputs, theirs)
        right = {name: some(expected[name]) for name in inputs.wrt}
        # Where nothing is a number, two NaN that agree show nothing.
        return all(bool(t.isfinite().all()) and self.same(some(got[name]), t) for name, t in right.items())

    def holds(self, inputs: Inputs, *, drawn: bool = False, times: float = 1) -> bool | None:
        """Whether the function is right for other arguments; None where they are refused.

        Args:
            inputs: the arguments.
            drawn: take cotangents of the shapes that come out for them, and not those at hand.
            times: how much larger these are.
        """
        if not can_be_made(self.trial.spec.function, inputs):
            return None
        try:
            v = like(outputs(self.trial.spec.primal(*inputs.args())), self.trial.seed) if drawn else None
            return self.is_right(inputs, v and scaled(v, times))
        except Exception:  # an index that is out of range, another shape
            return None

    def is_mended(self, got: Mapping[str, Tensor | None]) -> bool:
        """Whether other gradients are all right; where the right one is zero, none is needed."""
        return all(
            (right is None or not bool(right.any()))
            if (mine := got[name]) is None
            else right is not None and self.same(mine, right)
            for name, right in self.right.items()
        )

    def is_right_for(self, name: str, got: Mapping[str, Tensor | None]) -> bool:
        """Whether one of other gradients is there, and right."""
        mine, right = got[name], self.right[name]
        return mine is not None and right is not None and self.same(mine, right)

    @cached_property
    def right_already(self) -> tuple[str, ...]:
        """The arguments whose gradients are right."""
        return tuple(name for name in self.right if self.is_right_for(name, self.given))

    def same(self, one: Tensor, other: Tensor) -> bool:
        """Whether two tensors agree as the law asks it."""
        if self._is_far(one, other):
            return False
        # With a cause at hand none is looked for.
        is_same = compare(self.trial, "a gradient", one, other, likely="not asked") is HOLDS
        if not is_same and one.shape == other.shape and one.numel():
            self._note((one - other).detach().abs().max().item(), other.detach().abs().max().item())
        return is_same

    def _is_far(self, one: Tensor, other: Tensor) -> bool:
        """Whether they are farther apart than a comparison ever allows: this is asked thousands of times."""
        if one.shape != other.shape or not (one.dtype == other.dtype in FAR) or not one.numel():
            return False
        size = other.detach().abs().max().item()
        off = (one.detach() - other.detach()).abs().max().item()
        limit = 2 * allowed(self.trial, other.detach()).max().item() + FAR[one.dtype] * max(1.0, size)
        if off > limit:
            self._note(off, size)
        return off > limit  # not if there is a NaN

    def _note(self, off: float, size: float) -> None:
        if 0 < off <= NEARLY * size:
            self.found[NEAR] = True

    def _v(self) -> tuple[Tensor, ...]:
        return tuple(t.clone() for t in self.v)  # the function may change it


def scaled(v: tuple[Tensor, ...], times: float) -> tuple[Tensor, ...]:
    """Return cotangents that are larger; those of integers as they are."""
    return tuple(times * t if differentiable(t) else t for t in v)


def some(gradient: Tensor | None) -> Tensor:
    """Return a gradient.

    Raises:
        ValueError: there is none.
    """
    if gradient is None:
        raise ValueError("there is no gradient to look at")
    return gradient
