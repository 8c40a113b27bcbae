r"""Backward applies the transposed derivative of the surrogate.

Why it matters: this is the declared gradient; if it is deliberately not the derivative of forward, gradcheck cannot
judge it.

What breaks it: a factor forgotten, a flipped sign, an operand transposed, a relative error of 1e-6 in one element.

Remedy: write backward for the surrogate: what it returns for `x` is the cotangent times the derivative of the
surrogate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from gradspec._finding import MEANT
from gradspec._one_line import listed
from gradspec.law import HOLDS, Finding, Law, Status, Trial, broken, not_applicable, raised
from gradspec.laws.tensor.support._bound import declared, lowest
from gradspec.laws.tensor.support._call import Inputs, SpecFaultError, cotangents, differentiable, outputs, vjp
from gradspec.laws.tensor.support._compare import allowed, by_float32, compare_all, largest
from gradspec.laws.tensor.support._dense import dense
from gradspec.laws.tensor.support._diagnosis import quietly, unreduced
from gradspec.laws.tensor.support._differences import double, in_double
from gradspec.laws.tensor.support._farther import Three, than_the_reference
from gradspec.laws.tensor.support._guess import of_float32
from gradspec.laws.tensor.support._limits import gradient_limits
from gradspec.laws.tensor.support._reference import is_of_module, on_spec_side, reference
from gradspec.laws.tensor.support._slope import sloped
from gradspec.laws.tensor.support._witness import is_blind, note

#: How to say that an argument gets no gradient on purpose.
_MEANT = "if it is, as of a table or a mask, say what is trained: `wrt` in an audit or a spec, requires_grad in a call"


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return _unlooked(trial, inputs)
    y, graphs = _graphs(trial, inputs)
    is_low = lowest(inputs.values.values()) is not None
    if graphs is not None and not is_low and graphs.agree(trial, [v for _, v in cotangents(trial, y)]):
        return _where_sloped(trial, inputs)
    sizes: dict[str, float] | None = {} if declared(trial.spec, 1) else None
    for name, v in cotangents(trial, y):
        expected = vjp(reference(trial.spec), inputs, v)  # first: the function may change v
        try:
            got = vjp(trial.spec.function, inputs, v)
        except RuntimeError as error:
            return raised(error, likely=unreduced(error))
        limits = gradient_limits(trial, inputs, v, got)
        finding = compare_all(trial, "gradient", got, expected, when=f"{name} cotangent", limits=limits)
        if sizes is not None and _as_declared(trial, sizes, v, got, expected):
            continue
        if finding is not HOLDS and any(t.dtype == torch.float32 for t in y) and _is_of_float32(got, expected):
            return by_float32(finding)  # the output has no more digits
        if finding is not HOLDS:
            return replace(finding, details={**finding.details, MEANT: _MEANT}) if finding.got == "None" else finding
        for argument in inputs.wrt if "random" in name else ():
            if (limit := limits.get(argument)) is None:
                continue
            three, again = (got[argument], expected[argument], limit.right), partial(_gradient_of, trial, argument, v)
            if (finding := than_the_reference(trial, f"gradient of `{argument}`", three, again)) is not HOLDS:
                return finding
    return _where_sloped(trial, inputs)


def _gradient_of(trial: Trial, argument: str, v: tuple[Tensor, ...], inputs: Inputs) -> Three:
    """Return a gradient, the surrogate's in the same dtype, and in float64."""
    right, wide = reference(trial.spec), tuple(map(double, v))
    calls = ((right, inputs, v), (trial.spec.function, inputs, v), (right, in_double(inputs), wide))
    expected, got, exact = (vjp(call, at, tuple(t.clone() for t in w))[argument] for call, at, w in calls)
    return got, expected, exact


def _unlooked(trial: Trial, inputs: Inputs) -> Finding:
    """Say that a gradient is there and that the spec asks about none: nothing would ever be looked at.

    Raises:
        SpecFaultError: it is so.
    """
    is_named = any(isinstance(inputs.values.get(name), Tensor) for name in trial.spec.wrt)
    if not is_named and not is_of_module(trial.spec):  # an audit asks for the gradients of its parameters elsewhere
        written = getattr(trial.spec, "writes", ())  # an operator is called on a copy of these, which it returns
        names = tuple(name for name, value in inputs.values.items() if differentiable(value) and name not in written)
        given = quietly(lambda: vjp(trial.spec.function, Inputs(inputs.values, names), seed=trial.seed)) or {}
        if reached := [name for name, gradient in given.items() if gradient is not None]:
            named = (
                f"wrt names {listed(trial.spec.wrt)}, no tensor of floating point" if trial.spec.wrt else "wrt is ()"
            )
            raise SpecFaultError(f"{named}, and {listed(reached)} gets a gradient: name that in wrt")
    return not_applicable("no floating-point input in this case")


def _as_declared(
    trial: Trial,
    sizes: dict[str, float],
    v: tuple[Tensor, ...],
    got: Mapping[str, Tensor | None],
    expected: Mapping[str, Tensor | None],
) -> bool:
    """Whether all gradients are as exact as the spec declares, for a cotangent for which some are small, or zero.

    What a solver leaves is a part of what its gradient is elsewhere: with a cotangent of one element that may be 0.
    """
    of = max((largest(t) for t in v), default=0.0) or 1.0
    is_near = True
    for name, right in expected.items():
        mine = got[name]
        if right is None or mine is None or (mine.shape, mine.dtype) != (right.shape, right.dtype):
            is_near &= right is None and mine is None
            continue
        is_near &= bool((mine - right).isfinite().all())
        sizes[name] = max(sizes.get(name, 0.0), largest(right) / of)
        off = declared(trial.spec, right.numel()) * sizes[name] * of
        is_near &= off > 0 and largest(mine - right) <= off
    return is_near


def _is_of_float32(got: Mapping[str, Tensor | None], expected: Mapping[str, Tensor | None]) -> bool:
    """Whether each gradient is off by no more than float32 rounds."""
    pairs = [(got[name], expected[name]) for name in expected]
    return all((a is None and b is None) or (a is not None and b is not None and of_float32(a, b)) for a, b in pairs)


def _where_sloped(trial: Trial, inputs: Inputs) -> Finding:
    """Say of arguments whose gradient is zero here where it is not, and of those declared so that it is nowhere."""
    slopes = {}
    for name in inputs.wrt:
        declared = name in trial.spec.zero_gradient
        if declared or is_blind(f"gradient of `{name}`"):
            where = sloped(trial, inputs, name)
            if declared and where:
                return broken(
                    f"the gradient of `{name}` is declared to be zero, and the surrogate's is not: with {where}"
                )
            slopes[name] = where
    return Finding(status=Status.HOLDS, details={"sloped": slopes}) if slopes else HOLDS


class _Graphs:
    """One graph of the function and one of the surrogate: the short way to `holds`.

    Most of the time of a small check is the start of forward and backward passes. So the function is asked for each
    cotangent, and the surrogate, which is linear by construction, once for their sum. What does not agree here is
    judged on fresh graphs, a cotangent at a time; that one graph serves again and again is another law.
    """

    def __init__(self, trial: Trial, inputs: Inputs) -> None:
        surrogate, function = trial.spec.surrogate, trial.spec.function
        self.right, self.ours = inputs.leaves(), inputs.leaves()
        self.s = outputs(on_spec_side("surrogate", surrogate, *inputs.args(self.right)))
        self.y = outputs(function(*inputs.args(self.ours)))

    def same_form(self) -> bool:
        """Whether one cotangent fits both, and each output carries a gradient."""
        return _form(self.s) == _form(self.y) and all(t.requires_grad for t in (*self.s, *self.y))

    def agree(self, trial: Trial, directions: Sequence[tuple[Tensor, ...]]) -> bool:
        """Return whether the gradients agree, summed over cotangents; each goes to the function as it is."""
        total = [_sum(column) for column in zip(*directions, strict=True)]  # first: the function may change them
        try:
            expected = torch.autograd.grad(self.s, tuple(self.right.values()), total)
            passes = [torch.autograd.grad(self.y, tuple(self.ours.values()), v, retain_graph=True) for v in directions]
            got = [[dense(t) for t in one] for one in passes]
        except Exception:
            return False
        given = (_sum(column) for column in zip(*got, strict=True))
        agree = all(map(_close, given, expected))
        if agree:
            for name, right in zip(self.right, expected, strict=True):
                note(f"gradient of `{name}`", right, trial.spec.zero_gradient, partial(allowed, trial, right))
        return agree


def _close(got: Tensor, expected: Tensor) -> bool:
    """Return whether two gradients differ only by rounding; infinities of one cotangent would hide those of another.

    The bound is the part of the law's bound that is the same for every element.
    """
    if not expected.numel():
        return True
    size, error = (float(t.abs().max()) for t in (expected, got - expected))
    return error <= 8 * torch.finfo(expected.dtype).eps * size < torch.inf


def _sum(tensors: Sequence[Tensor]) -> Tensor:
    """Return the sum of tensors, in memory of its own."""
    total = tensors[0] + tensors[1]
    for tensor in tensors[2:]:
        total += tensor
    return total


def _graphs(trial: Trial, inputs: Inputs) -> tuple[tuple[Any, ...], _Graphs | None]:
    """Return what cotangents must fit, and the graphs if the short way can be gone."""
    graphs = _Graphs(trial, inputs)
    if graphs.same_form():
        return tuple(t.detach() for t in graphs.s), graphs
    return outputs(on_spec_side("primal", trial.spec.primal, *inputs.args())), None


def _form(tensors: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    return [(t.shape, t.dtype, t.device) for t in tensors]


VJP = Law(
    name="vjp",
    family="derivative",
    statement=r"\bar{x} = Ds(x)^{\top}\,\bar{y}",
    check=_check,
    doc=__doc__ or "",
    needs_spec=True,
    requires=("primal",),
)
