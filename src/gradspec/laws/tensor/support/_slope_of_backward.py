r"""The backward pass as a function of its own, held to its numerical derivative: no spec says what it should be.

With :math:`B(x, v)` the gradient for a cotangent :math:`v`, autograd differentiates :math:`\langle w, B(x, v) \rangle`
in :math:`x` and in :math:`v`. Central differences move the same arguments and call the backward pass again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Status, Trial, broken
from gradspec.laws.tensor.support._bound import declared
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs
from gradspec.laws.tensor.support._differences import Slope, digits, double, in_double, inner, slope
from gradspec.laws.tensor.support._kink import beside, is_kink
from gradspec.laws.tensor.support._symmetric import kept_symmetric

#: Under this name the cotangent is among the arguments of the backward pass.
COTANGENT = "the cotangent"
#: What a finding is about.
ALONG = "derivative of the gradient with respect to {}"


@dataclass(frozen=True)
class _Backward:
    """One backward pass: its arguments, what its result is multiplied with, and in which directions they move."""

    trial: Trial
    inputs: Inputs
    cotangents: tuple[Tensor, ...]
    weights: tuple[Tensor, ...]
    directions: Mapping[str, tuple[Tensor, ...]]

    @classmethod
    def of(cls, trial: Trial, inputs: Inputs, seed: int, *, in_proportion: bool = False) -> _Backward:
        """Return a backward pass at some arguments, which move alike or, in proportion, by a share of themselves."""
        leaves = inputs.leaves()
        y = outputs(trial.spec.function(*inputs.args(leaves)))
        x, v = inputs.tensors(), like(tuple(t for t in y if t.requires_grad), seed)
        moved = [*((f"`{name}`", (t,)) for name, t in zip(inputs.wrt, x, strict=True)), (COTANGENT, v)]
        directions = {
            name: tuple(t / 9 for t in like(tensors, seed + k + 2)) for k, (name, tensors) in enumerate(moved)
        }
        if in_proportion:
            shares = {name: [a.abs().clamp(max=1) for a in tensors] for name, tensors in moved if name != COTANGENT}
            directions |= {n: tuple(map(torch.mul, directions[n], share)) for n, share in shares.items()}
        return cls(trial, inputs, v, like(x, seed + 1), directions)

    def kept_symmetric(self) -> _Backward | None:
        """Return the same in a direction in which symmetric matrices stay so, where the function reads a triangle."""
        u = tuple(self.directions[f"`{name}`"][0] for name in self.inputs.wrt)
        kept = kept_symmetric(self.inputs, u, self.inputs.closed(self.trial.spec.function))
        if kept is None:
            return None
        moved = {f"`{name}`": (t,) for name, t in zip(self.inputs.wrt, kept, strict=True)}
        return replace(self, directions={**self.directions, **moved})

    def graph(self, *, differentiable: bool, moved: str = "", step: float = 0.0) -> tuple[list[Tensor], list[Tensor]]:
        """Return the terms of `w * B(x, v)` and their leaves, x before v, where one argument is moved by a step."""
        leaves = self.inputs.leaves()
        along = dict(self.directions)
        with torch.no_grad():
            for name, leaf in leaves.items():
                if moved == f"`{name}`":
                    leaf.add_(along[moved][0], alpha=step)
        shift = along[moved] if moved == COTANGENT else [torch.zeros_like(v) for v in self.cotangents]
        v = [
            (a + step * b).detach().requires_grad_(differentiable) for a, b in zip(self.cotangents, shift, strict=True)
        ]
        y = tuple(t for t in outputs(self.trial.spec.function(*self.inputs.args(leaves))) if t.requires_grad)
        found = gradients(y, leaves, tuple(v), create_graph=differentiable)
        terms = [w.conj() * g for w, g in zip(self.weights, found.values(), strict=True) if g is not None]
        return terms, [*leaves.values(), *v]

    def at(self, moved: str, step: float) -> float:
        """Return `<w, B(x, v)>` where an argument is moved by a step."""
        terms, _ = self.graph(differentiable=False, moved=moved, step=step)
        return sum(float(double(term.detach()).real.sum()) for term in terms)

    def by_autograd(self) -> tuple[dict[str, float | None], float]:
        """Return the derivative by autograd along each direction, None for no graph at all, and the size of terms."""
        terms, leaves = self.graph(differentiable=True)
        size = sum(float(term.detach().abs().sum()) for term in terms)
        total = torch.stack([term.real.sum().double() for term in terms]).sum() if terms else torch.zeros(())
        found: list[Tensor | None] = [None] * len(leaves)
        if total.requires_grad:
            found = list(torch.autograd.grad(total, leaves, allow_unused=True))
            if all(gradient is None for gradient in found):
                total.backward()  # type: ignore[no-untyped-call]  # what refuses to be differentiated twice raises on the way to no argument
        groups = {name: [found.pop(0) for _ in along] for name, along in self.directions.items()}
        derivatives: dict[str, float | None] = {}
        for name, group in groups.items():
            along = [inner(g, u) for g, u in zip(group, self.directions[name], strict=True) if g is not None]
            derivatives[name] = sum(along) if along else None
        return derivatives, size


def judge_by_differences(trial: Trial, inputs: Inputs) -> Finding:
    """Compare the derivatives of the backward pass by autograd with central differences of it."""
    wide, finding = _wide(trial, inputs), HOLDS
    for attempt in range(2):  # broken needs two failures, in fresh directions
        seed = trial.seed + 100 * attempt
        finding = _judge(_Backward.of(trial, wide, seed), seed)
        if finding.status is Status.BROKEN and _is_within_a_step(wide):
            found = _judge(_Backward.of(trial, wide, seed, in_proportion=True), seed)
            finding = finding if found.status is Status.BROKEN else found
        if finding.status is not Status.BROKEN:
            return finding
    return finding


def _is_within_a_step(inputs: Inputs) -> bool:
    """Whether an element lies nearer to zero than a step is long, beyond which a function may have no values."""
    longest = [(t.abs(), digits(t.dtype.to_real()).steps[0]) for t in inputs.tensors()]
    return any(bool(((size > 0) & (size < step)).any()) for size, step in longest)


def by_autograd(trial: Trial, inputs: Inputs) -> dict[str, float | None]:
    """Return the derivatives of the backward pass by autograd, by what moves; None where no graph leads to it."""
    return _Backward.of(trial, _wide(trial, inputs), trial.seed).by_autograd()[0]


def _wide(trial: Trial, inputs: Inputs) -> Inputs:
    """Return the arguments in double precision, where the function takes that."""
    wide = in_double(inputs)
    try:
        _Backward.of(trial, wide, trial.seed).at(COTANGENT, 0.0)
    except Exception:
        return inputs  # a function that takes its own dtype only
    return wide


def _judge(backward: _Backward, seed: int, *, is_beside: bool = False) -> Finding:
    dtype = backward.inputs.tensors()[0].dtype.to_real()
    exact, size = backward.by_autograd()
    unclear = ""
    for name, derivative in exact.items():
        along = partial(backward.at, name)
        numeric = slope(along, dtype)
        scale = max(abs(derivative or 0.0), abs(numeric.value), size)
        if not numeric.is_clear(scale if math.isfinite(scale) else size, dtype):
            unclear = unclear or name
        elif not numeric.agrees(derivative or 0.0, scale, dtype):
            if derivative is not None and abs(derivative - numeric.value) <= declared(backward.trial.spec, 1) * scale:
                continue
            if (kept := backward.kept_symmetric()) is not None:
                return _judge(kept, seed, is_beside=is_beside)
            if not is_beside and is_kink(along, size, dtype):
                return _judge_beside(backward, seed, name)
            return _wrong(name, exact, numeric)
    if unclear:
        said = f"the backward pass is not smooth in {unclear} here: central differences of it do not converge"
        return Finding(status=Status.NOT_MEASURED, message=said)
    return HOLDS


def _judge_beside(backward: _Backward, seed: int, name: str) -> Finding:
    """Return what is said where the gradient itself has a kink, as that of the square of relu: beside it is none."""
    finding = _judge(_Backward.of(backward.trial, beside(backward.inputs, seed), seed), seed, is_beside=True)
    if finding.status is Status.BROKEN:
        return finding
    said = f"the backward pass has a kink in {name} here, where it has several derivatives"
    return Finding(status=Status.NOT_MEASURED, message=f"{said}; beside it: {finding.message or finding.status}")


def _wrong(name: str, exact: Mapping[str, float | None], numeric: Slope) -> Finding:
    derivative = exact[name]
    if all(found is None for found in exact.values()):
        said = "the gradient has no history: a second derivative through it is lost silently"
    elif derivative is None:
        said = f"the second derivative with respect to {name} is lost silently"
    elif math.isnan(derivative):
        said = f"the second derivative with respect to {name} is NaN"
    else:
        said = f"the second derivative with respect to {name} is not that of the backward pass"
    return broken(
        said,
        argument=ALONG.format(name),
        got="None" if derivative is None else f"{derivative:.12g}",
        expected=str(numeric),
    )
