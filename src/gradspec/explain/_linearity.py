r"""Why backward is not linear in its cotangent, as other cotangents show it.

With :math:`B(v)` the gradient for a cotangent, it is constant where :math:`B(v) = B(w)`, of signs where another factor
for each element changes nothing, normalised where :math:`B(2 v) = B(v)` alone, and offset where :math:`B(v) - B(0)` is
linear. It is clipped where it is linear for small cotangents, which no limit touches, and drops negative ones where it
is linear for cotangents without any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from gradspec.explain._wrong import Wrong, scaled
from gradspec.law import HOLDS, Reason, Trial
from gradspec.laws.tensor.support._call import Inputs, like, outputs, vjp
from gradspec.laws.tensor.support._compare import compare, distance
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._reference import reference
from gradspec.spec._function import with_function

#: How small a cotangent is that no limit clips; and where one does that is low.
SMALL, SMALLER = 1e-3, 1e-6
CLIPPED = "backward clips the cotangent: right for small ones"
ADDS = "backward adds what no cotangent has made: without any, the gradient is not zero"
#: The reasons that say what is done to the cotangent.
NOT_LINEAR = ("clipped", "negative cotangent", "sign alone", "normalised", "offset")
_Gradients = Mapping[str, Tensor | None]


def why_not_linear(trial: Trial) -> Reason | None:
    """Return why the gradient of some argument is not linear in the cotangent; None where nothing shows it."""
    inputs = Inputs.of(trial)
    y = outputs(trial.spec.function(*inputs.args()))
    v, w = (like(y, trial.seed + k) for k in (5, 6))
    asked = _Asked(trial, inputs)
    first, again = asked(v), asked(v)
    if any(_differ(first[name], again[name]) for name in inputs.wrt):
        said = "backward gives another gradient each time: it draws noise, or changes what it finds on ctx"
        return Reason(kind="noise", words=said)
    none = asked(tuple(torch.zeros_like(t) for t in v))
    for name in inputs.wrt:
        if (why := _why(asked, name, v, w, none[name])) is not None:
            return why
    return None


def of_the_cotangent(wrong: Wrong) -> Reason | None:
    """Why a wrong gradient is not linear in the cotangent, where the right one is.

    If it is clipped, it has to be right for small ones, and if it is for those without a negative number, for these.
    """
    found = why_not_linear(wrong.trial)
    if found is None or found.evidence.get("argument") != wrong.name:
        return None
    spec = wrong.trial.spec
    right = replace(wrong.trial, spec=with_function(spec, reference(spec)))
    meant = quietly(lambda: why_not_linear(right))
    if meant is not None and meant.kind == found.kind:
        return None  # it is meant to be so
    near = {
        "clipped": lambda: scaled(wrong.v, found.evidence["times"]),
        "negative cotangent": lambda: tuple(t.abs() for t in wrong.v),
    }
    is_right = found.kind not in near or wrong.is_right(wrong.inputs, near[found.kind]())
    return found if is_right else None


def ignores(trial: Trial) -> list[str]:
    """Return the arguments whose gradient is the same for each cotangent, and not zero."""
    inputs = Inputs.of(trial)
    y = outputs(trial.spec.function(*inputs.args()))
    given = [vjp(trial.spec.function, inputs, like(y, trial.seed + k)) for k in (5, 6, 7)]
    return [name for name in inputs.wrt if _is_constant([one[name] for one in given])]


def adds(trial: Trial) -> tuple[list[str], bool]:
    """Return the arguments whose gradient is not zero where each cotangent is, and whether an earlier call decides it.

    What another call has left there is memory that was not cleared.
    """
    inputs = Inputs.of(trial)
    y = outputs(trial.spec.function(*inputs.args()))
    none = tuple(torch.zeros_like(t) for t in like(y, trial.seed))
    first = vjp(trial.spec.function, inputs, none)
    quietly(lambda: vjp(trial.spec.function, inputs.scaled((0.5,)), like(y, trial.seed + 7)))
    again = vjp(trial.spec.function, inputs, none)
    some = {name: gradient for name, gradient in first.items() if gradient is not None and bool(gradient.any())}
    added = [name for name, gradient in some.items() if bool(gradient.isfinite().all())]  # 0 / 0 is no term
    return added, any(_differ(first[name], again[name]) for name in added)


def _is_constant(given: list[Tensor | None]) -> bool:
    first, *rest = given
    return first is not None and bool(first.any()) and not any(_differ(first, other) for other in rest)


class _Asked:
    """The gradients of a function for a cotangent."""

    def __init__(self, trial: Trial, inputs: Inputs) -> None:
        self.trial, self.inputs = trial, inputs

    def __call__(self, v: tuple[Tensor, ...]) -> _Gradients:
        return vjp(self.trial.spec.function, self.inputs, tuple(t.clone() for t in v))

    def same(self, one: Tensor, other: Tensor) -> bool:
        return compare(self.trial, "gradient", one, other, is_derivative=True) is HOLDS


def _why(asked: _Asked, name: str, v: tuple[Tensor, ...], w: tuple[Tensor, ...], none: Tensor | None) -> Reason | None:
    of_v, of_w = asked(v)[name], asked(w)[name]
    if of_v is None or of_w is None or none is None or _is_linear(asked, name, v, w, torch.zeros_like(none)):
        return None
    facts = {"argument": name}
    if not _differ(of_v, of_w):
        return Reason(kind="ignored cotangent", words="backward ignores the cotangent", evidence=facts)
    for times in () if bool(none.any()) else (SMALL, SMALLER):
        little, less = (tuple(times * t for t in one) for one in (v, w))
        if _of(asked, name, little).any() and _is_linear(asked, name, little, less, none):
            return Reason(kind="clipped", words=CLIPPED, evidence={**facts, "times": times})
    positive = [tuple(t.abs() for t in one) for one in (v, w)]
    if (
        not bool(none.any())
        and _of(asked, name, positive[0]).any()
        and _is_linear(asked, name, positive[0], positive[1], none)
    ):
        said = "backward is linear where no number of the cotangent is negative, and does otherwise with negative ones"
        return Reason(kind="negative cotangent", words=said, evidence=facts)
    if asked.same(_of(asked, name, tuple(_of_other_sizes(t) for t in v)), of_v):
        said = "backward takes the sign of the cotangent alone: elements of other sizes give the same gradient"
        return Reason(kind="sign alone", words=said, evidence=facts)
    if asked.same(_of(asked, name, tuple(2 * t for t in v)), of_v):
        said = "backward normalises the cotangent: twice of it has the same gradient"
        return Reason(kind="normalised", words=said, evidence=facts)
    if bool(none.isfinite().all()) and bool(none.any()) and _is_linear(asked, name, v, w, none):
        return Reason(kind="offset", words=ADDS, evidence=facts)
    return None


def _of_other_sizes(v: Tensor) -> Tensor:
    """Return numbers of the same signs, each of which is larger by another factor."""
    return v * torch.linspace(1.5, 3.5, v.numel(), dtype=v.dtype, device=v.device).reshape(v.shape)


def _is_linear(asked: _Asked, name: str, v: tuple[Tensor, ...], w: tuple[Tensor, ...], offset: Tensor) -> bool:
    both = _of(asked, name, tuple(a + b for a, b in zip(v, w, strict=True))) - offset
    return asked.same(both, _of(asked, name, v) - offset + _of(asked, name, w) - offset)


def _of(asked: _Asked, name: str, v: tuple[Tensor, ...]) -> Tensor:
    found = asked(v)[name]
    if found is None:
        raise ValueError("there is no gradient to look at")
    return found


def _differ(one: Tensor | None, other: Tensor | None) -> bool:
    return one is not None and other is not None and distance(one, other) > 0
