r"""Under `torch.autocast`, forward and backward work, and are as accurate as plain operations under it.

Why it matters: autocast runs some operations of forward in bfloat16, but does not apply in backward, so saved tensors
and cotangents have different dtypes.

What breaks it: a matrix product whose cotangent is multiplied by a saved float32 tensor; `torch.amp.custom_fwd` on a
Function with `setup_context`.

Remedy: compute forward and backward under `torch.autocast(device, enabled=False)`, or cast the saved tensors to the
cotangent's dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Rank, Reason, Trial, broken, not_applicable
from gradspec.laws.tensor.support._call import (
    Inputs,
    SpecFaultError,
    StandInError,
    differentiable,
    gradients,
    like,
    outputs,
)
from gradspec.laws.tensor.support._compare import describe, distance, largest, of_right_numbers
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._differences import overflows
from gradspec.laws.tensor.support._reference import as_reference, on_spec_side, reference

#: Of the largest element: more than float32 loses where not much cancels, and less than bfloat16 loses at most.
_SINGLE, _LOW = 2**-14, 0.05
LOWER = Reason(kind="lower precision", words="something is computed in a lower precision than autocast would")


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt or not all(inputs.values[name].is_floating_point() for name in inputs.wrt):
        return not_applicable("no real floating-point input in this case, for autocast to cast")
    single = _cast(inputs, torch.float32)
    if overflows(inputs, _cast(single, torch.bfloat16)):
        return not_applicable("float32 and bfloat16 have no such large numbers")
    # Cotangents that every dtype can hold.
    try:
        y = outputs(on_spec_side("primal", trial.spec.primal, *single.args()))
    except StandInError:  # the function itself
        raise
    except SpecFaultError:
        return not_applicable("the primal takes no float32, and without one there is nothing to compare with")
    v = tuple(t.bfloat16() for t in like(y, trial.seed))
    right = _exact(trial, single, v)
    device = single.values[inputs.wrt[0]].device.type
    with torch.autocast(device, dtype=torch.bfloat16):
        y, leaves = _forward(trial.spec.function, single)
        plain_y, plain_leaves = _forward(reference(trial.spec), single)
    got = _backward(y, leaves, v)
    with as_reference(trial.spec):
        plain = _backward(plain_y, plain_leaves, v)
    rounding = max(torch.finfo(t.dtype).eps for t in y if differentiable(t))
    for name, value in got.items():
        mine, theirs, truth = value, plain[name], right[name]
        if mine is None or theirs is None or truth is None:
            continue  # that a gradient is missing is for the law vjp to say
        if not differentiable(truth):
            continue  # a mask or an index may turn with the rounding of what is compared
        # Which operations autocast casts, and whether the last of them is one, differs between right ways to write it.
        if mine.dtype not in (theirs.dtype, torch.float32, torch.bfloat16):
            return broken(
                f"{name} under autocast has another dtype",
                got=describe(mine),
                expected=describe(theirs),
                likely=of_right_numbers(mine, theirs),
            )
        if (finding := _judge(name, mine, theirs, truth, rounding)) is not HOLDS:
            is_lower = finding.reason is None and quietly(lambda: _is_lower(trial, single, v, name, mine, truth))  # noqa: B023  # called at once
            return finding.because(LOWER) if is_lower else finding
    return HOLDS


def _is_lower(trial: Trial, single: Inputs, v: tuple[Tensor, ...], name: str, got: Tensor, right: Tensor) -> bool:
    """Whether a result is off by what a lower precision than float32 rounds, or is that of arguments in one.

    Not where the function is as far off in float64: it is wrong in another way then.
    """

    def off(dtype: torch.dtype, expected: Tensor) -> float:
        given = _backward(*_forward(trial.spec.function, _cast(single, dtype)), v)[name]
        return torch.inf if given is None else distance(given.double(), expected.double())

    error = distance(got.double(), right)
    if off(torch.float64, right) > 1e-3 * error:
        return False
    is_of_rounding = _SINGLE < error / largest(right) < _LOW
    return is_of_rounding or off(torch.bfloat16, got) <= 1e-2 * error


def _exact(trial: Trial, single: Inputs, v: tuple[Tensor, ...]) -> dict[str, Tensor | None]:
    """Return outputs and gradients in float64; in float32, in an audit of a function that takes nothing else."""

    def passed(inputs: Inputs) -> dict[str, Tensor | None]:
        with as_reference(trial.spec):
            return _backward(*_forward(reference(trial.spec), inputs), v)

    try:
        return passed(_cast(single, torch.float64))
    except StandInError:
        return passed(single)


def _cast(inputs: Inputs, dtype: torch.dtype) -> Inputs:
    return Inputs({n: v.to(dtype) if differentiable(v) else v for n, v in inputs.values.items()}, inputs.wrt)


def _forward(function: Callable[..., Any], inputs: Inputs) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
    leaves = inputs.leaves()
    return outputs(function(*inputs.args(leaves))), leaves


def _backward(y: tuple[Tensor, ...], leaves: dict[str, Tensor], v: tuple[Tensor, ...]) -> dict[str, Tensor | None]:
    """Return outputs and gradients by name; backward runs outside autocast, as the documentation of torch says."""
    got = gradients(y, leaves, tuple(a.to(t.dtype) for a, t in zip(v, y, strict=True)))
    return {**{f"output {k}": t for k, t in enumerate(y)}, **{f"gradient of `{n}`": g for n, g in got.items()}}


def _is_infinite(got: Tensor, right: Tensor) -> Tensor:
    """Return where nothing compares: of an infinite value s the reference, s - s + s, makes NaN."""
    return got.isinf() & right.isnan()


def _judge(name: str, got: Tensor, plain: Tensor, right: Tensor, rounding: float) -> Finding:
    """Allow twice the error of plain operations under autocast, and two units of rounding of the largest element.

    Where an element exceeds that by little, all together have to.
    """
    if got.numel() == 0:
        return HOLDS
    size = largest(right)
    bound = 2 * (plain.double() - right).abs() + 2 * rounding * size
    excess = (got.detach().double() - right).abs() - bound
    # What is as infinite or undefined in float64 is so by no lower precision; beside an infinity nothing compares.
    excess = excess.masked_fill((got == right) | (got.isnan() & right.isnan()) | _is_infinite(got, right), 0.0)
    # `not (excess <= 0)` rather than `excess > 0`: a NaN is wrong.
    if not bool((~(excess <= 0)).any()):
        return HOLDS
    worst = int(excess.detach().nan_to_num(nan=torch.inf).flatten().argmax())
    error = (got.detach().double() - right).abs().nan_to_num(nan=torch.inf)
    is_nan = bool((got.isnan() & right.isfinite()).any())
    is_low = float(error.max()) < _LOW * size
    if is_low and float(error.norm()) <= 2 * float((plain.double() - right).norm()):
        return HOLDS  # there plain operations happen to be near, and they are as far off elsewhere
    return broken(
        f"{name} under autocast is {'NaN' if is_nan else 'less accurate than plain operations'}",
        rank=Rank.WASTE if is_low else Rank.WRONG,
        argument=name,
        got=f"{got.flatten()[worst].item():.6g}",
        expected=f"{right.flatten()[worst].item():.6g}",
        reason=Reason(kind="nan", words="", of_function=True) if is_nan else None,
    )


AUTOCAST = Law(
    name="autocast",
    family="transforms",
    statement=r"|\operatorname{autocast}(F) - F_{64}| \le 2\,|\operatorname{autocast}(r) - r_{64}| + \text{ulp}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
    capability="autocast",
)
