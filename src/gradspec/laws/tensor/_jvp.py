r"""Forward mode applies the derivative of the surrogate, by `torch.func.jvp` and by dual tensors.

Why it matters: Hessian-vector products and Jacobians by columns use it; with a surrogate it is easily written for
the primal.

What breaks it: a jvp written for the primal, a jvp that dual tensors refuse because forward returns a view.

Remedy: write jvp for the surrogate: it returns the derivative of the surrogate times the tangent.
"""

from __future__ import annotations

import torch
from torch.autograd import forward_ad

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable, raised
from gradspec.laws.tensor.support._call import Inputs, like, outputs, pushforward
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._reference import on_spec_side, reference
from gradspec.laws.tensor.support._wrong_terms import wrong_terms
from gradspec.spec._gradient import NO_MAP, gradient_of

#: The values and the tangents of the outputs.
_Dual = tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor | None, ...]]


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    if gradient_of(trial.spec.surrogate):
        return not_applicable(NO_MAP)
    x = inputs.tensors()
    u = like(x, trial.seed)
    expected = pushforward(inputs.closed(reference(trial.spec)), x, u)[1]
    value = outputs(on_spec_side("primal", trial.spec.primal, *inputs.args()))
    for way, forward_mode in (("torch.func.jvp", _by_func), ("dual tensors", _by_dual_tensors)):
        try:
            got = forward_mode(trial, inputs, x, u)
        except Exception as error:
            return raised(error, way)
        for what, mine, theirs in zip(("value", "tangent"), got, (value, expected), strict=True):
            for a, b in zip(mine, theirs, strict=True):
                if (finding := compare(trial, f"{what} of the output by {way}", a, b)) is not HOLDS:
                    return finding if finding.likely else finding.because(wrong_terms(trial, inputs, x, u))
    return HOLDS


def _by_func(trial: Trial, inputs: Inputs, x: tuple[torch.Tensor, ...], u: tuple[torch.Tensor, ...]) -> _Dual:
    return pushforward(inputs.closed(trial.spec.function), x, u)


def _by_dual_tensors(trial: Trial, inputs: Inputs, x: tuple[torch.Tensor, ...], u: tuple[torch.Tensor, ...]) -> _Dual:
    with forward_ad.dual_level():
        duals = (
            forward_ad.make_dual(a, b)  # type: ignore[no-untyped-call]
            for a, b in zip(x, u, strict=True)
        )
        y = inputs.closed(trial.spec.function)(*duals)
        pairs = [forward_ad.unpack_dual(t) for t in y]  # type: ignore[no-untyped-call]
        return tuple(pair.primal for pair in pairs), tuple(pair.tangent for pair in pairs)


JVP = Law(
    name="jvp",
    family="derivative",
    scope=Scope.FORWARD,
    statement=r"\dot{y} = Ds(x)\,\dot{x}",
    check=_check,
    doc=__doc__ or "",
    needs_spec=True,
    requires=("primal", "vjp"),
    capability="forward_mode",
)
