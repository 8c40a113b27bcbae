r"""Differentiating the backward pass gives the second derivative of the surrogate; once more the third, the fourth.

Why it matters: gradient penalties, influence functions and meta-learning differentiate a gradient; a detached
backward drops their term silently.

What breaks it: `.data` or numpy in backward, intermediates kept on ctx, `once_differentiable` (which does not raise
in a gradient penalty).

Remedy: compute backward in plain differentiable torch from saved tensors, or promise `double_backward=False` and
raise.

A surrogate that stops by `detach()` what its gradient depends on says first derivatives only. Second ones are then held
to it where the spec promises `double_backward=True`.

In an audit no surrogate is declared. The backward pass itself, a function of the input and of the cotangent, is then
differentiated by autograd and by central differences.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._compare import compare, distance, largest
from gradspec.laws.tensor.support._cut_by_detach import FIRST_ONLY, is_cut_by_detach
from gradspec.laws.tensor.support._penalty import TIMES, is_no_slope, penalty
from gradspec.laws.tensor.support._reference import is_stand_in, reference
from gradspec.laws.tensor.support._slope_of_backward import judge_by_differences
from gradspec.spec._gradient import NO_MAP, gradient_of

#: How far off a fourth derivative may be, of its largest element: it is asked for its terms, few digits are left.
TERMS = 1e-3
#: How many points between the case and zero say how large the terms are.
POINTS = 8


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    if gradient_of(trial.spec.surrogate):
        return not_applicable(NO_MAP)
    if is_stand_in(trial.spec.surrogate):
        return judge_by_differences(trial, inputs)
    if trial.spec.supports.double_backward is not True and is_cut_by_detach(trial, inputs):
        return not_applicable(FIRST_ONLY)
    right = reference(trial.spec)
    got, _, is_sparse = penalty(trial.spec.function, inputs, trial.seed)
    expected = penalty(right, inputs, trial.seed).found
    last = ""  # the order that is compared last: what follows is made of numbers that are wrong themselves
    for name, derivative in expected.items():
        if last and not name.startswith(last):
            break
        mine = got[name]
        order = name.split()[0]
        if is_sparse and order != "second":
            break  # torch itself has none
        if derivative is not None and mine is not None and mine.shape == derivative.shape:
            # A reference that divides 0 by 0 does not know what is right there.
            derivative = derivative.where(~derivative.isnan() | ~mine.isfinite(), mine)
        finding = compare(trial, name, mine, derivative, is_derivative=True, times=TIMES[order])
        if finding is HOLDS or _is_rounding(trial, inputs, name, mine, derivative):
            continue
        if order != "second" and is_no_slope(right, inputs, trial.seed, name):
            last = order
            continue
        return finding
    return HOLDS


def _is_rounding(trial: Trial, inputs: Inputs, name: str, got: Tensor | None, expected: Tensor | None) -> bool:
    """Whether a derivative is off by no more than rounding explains, where the comparison asks for more digits."""
    if got is None or expected is None or got.shape != expected.shape:
        return False
    error = distance(got, expected)
    if name.startswith("fourth") and error <= TERMS * largest(expected):
        return True
    return error <= _of_terms(trial, inputs, name, expected)


def _of_terms(trial: Trial, inputs: Inputs, name: str, expected: Tensor) -> float:
    """Return how far off a derivative may be: 8 units of rounding of its largest element between the case and zero.

    Where a function is flat, its derivatives are what is left when terms of an ordinary size cancel: a softmax of large
    logits has a second derivative of 1e-56 there, made of terms near 1. No digit of it is in the answer of anybody.
    """
    # |fl(sum_k t_k) - sum_k t_k| <= n u sum_k |t_k| (Higham 2002, section 4.2), whatever is left of the sum. The terms
    # are not at hand, but where they do not cancel the sum is as large as they are: on the way to zero, that is.
    near = (penalty(reference(trial.spec), inputs.scaled([0.5**k]), trial.seed).found[name] for k in range(POINTS))
    return 8 * torch.finfo(expected.dtype).eps * max(largest(t) for t in near if t is not None)


SECOND_ORDER = Law(
    name="second_order",
    family="derivative",
    scope=Scope.HIGHER,
    statement=r"D_x \langle w, \bar{x}(x, v) \rangle = D_x \langle w, Ds(x)^{\top} v \rangle",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
    capability="double_backward",
)
