r"""JVP and VJP are adjoint: :math:`\langle w, Jv \rangle = \langle J^{\top} w, v \rangle`.

Why it matters: forward mode and backward are two programs for one linear map; torch never compares them.

What breaks it: jvp and backward written for two different maps, one for the primal and one for the surrogate.

Remedy: write both for the surrogate.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Reason, Trial, broken, not_applicable
from gradspec.laws.tensor.support._bound import declared
from gradspec.laws.tensor.support._call import Inputs, like, pushforward, vjp
from gradspec.laws.tensor.support._symmetric import kept_symmetric
from gradspec.spec._gradient import NO_MAP, gradient_of


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    if gradient_of(trial.spec.surrogate):
        return not_applicable(NO_MAP)
    x = inputs.tensors()
    v = like(x, trial.seed)
    finding = _judge(trial, inputs, v)
    if finding is not HOLDS and (kept := kept_symmetric(inputs, v, inputs.closed(trial.spec.function))) is not None:
        return _judge(trial, inputs, kept)
    return finding


def _judge(trial: Trial, inputs: Inputs, v: tuple[Tensor, ...]) -> Finding:
    x = inputs.tensors()
    y, jv = pushforward(inputs.closed(trial.spec.function), x, v)
    w = like(y, trial.seed + 1)
    jtw = vjp(trial.spec.function, inputs, w)
    left, size_left = _inner(w, jv)
    right, size_right = _inner(tuple(jtw.values()), v)
    rounding = max(torch.finfo(t.dtype).eps for t in x)
    off = declared(trial.spec, sum(t.numel() for t in x))
    bound = max(trial.profile.rtol, 8 * rounding, off) * max(size_left, size_right)
    if abs(left - right) <= bound:
        return HOLDS
    if not _is_finite(jv) and not _is_finite(tuple(jtw.values())):
        return not_applicable("the derivatives are not finite here, in both modes: no inner product compares them")
    return broken(
        "forward mode and backward are not adjoint",
        argument="⟨w, J v⟩ against ⟨Jᵀ w, v⟩",
        got=f"{left:.12g}",
        expected=f"{right:.12g}",
        reason=Reason(kind="two maps", words="jvp and backward differentiate two different maps"),
    )


def _is_finite(tensors: Sequence[Tensor | None]) -> bool:
    return all(t is None or bool(t.isfinite().all()) for t in tensors)


def _inner(a: tuple[Tensor | None, ...], b: tuple[Tensor, ...]) -> tuple[float, float]:
    """Return the inner product, and the sum of the sizes of its terms, which bounds its rounding."""
    terms = [(s.conj() * t).real.double() for s, t in zip(a, b, strict=True) if s is not None]
    return sum(float(t.sum()) for t in terms), sum(float(t.abs().sum()) for t in terms)


ADJOINT = Law(
    name="adjoint",
    family="derivative",
    scope=Scope.FORWARD,
    statement=r"\langle w, J v \rangle = \langle J^{\top} w, v \rangle",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
    implied_by=("vjp", "jvp"),
    capability="forward_mode",
)
