r"""Differentiating the backward pass gives the second derivative of the surrogate; once more the third, the fourth.

Why it matters: gradient penalties, influence functions and meta-learning differentiate a gradient; a detached
backward drops their term silently.

What breaks it: `.data` or numpy in backward, intermediates kept on ctx, `once_differentiable` (which does not raise
in a gradient penalty).

Remedy: compute backward in plain differentiable torch from saved tensors, or promise `double_backward=False` and
raise.

In an audit no surrogate is declared. The backward pass itself, a function of the input and of the cotangent, is then
differentiated by autograd and by central differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable
from gradspec.laws.tensor.support._call import Inputs, differentiable, like, outputs
from gradspec.laws.tensor.support._compare import compare, largest
from gradspec.laws.tensor.support._reference import is_stand_in, reference
from gradspec.laws.tensor.support._slope_of_backward import judge_by_differences

#: How far off a fourth derivative may be, of its largest element: it is asked for its terms, few digits are left.
TERMS = 1e-3
#: How large numbers from -9 to 9 make a derivative, by how many of them it is multiplied.
TIMES = {"second": 9.0, "third": 81.0, "fourth": 729.0}
#: How many calls near a case say how far off rounding takes the reference.
PROBES = 8


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    if is_stand_in(trial.spec.surrogate):
        return judge_by_differences(trial, inputs)
    got, expected = _penalty(trial.spec.function, inputs, trial), _penalty(reference(trial.spec), inputs, trial)
    cut = "backward is cut from the graph: look for .data, detach(), numpy, or an intermediate kept on ctx"
    for name, derivative in expected.items():
        mine = got[name]
        is_cut = mine is None or not bool(mine.any())
        order = name.split()[0]
        finding = compare(trial, name, mine, derivative, likely=cut if is_cut else "", times=TIMES[order])
        if finding is not HOLDS and not _is_rounding(trial, inputs, name, got[name], derivative):
            return finding
    return HOLDS


def _is_rounding(trial: Trial, inputs: Inputs, name: str, got: Tensor | None, expected: Tensor | None) -> bool:
    """Whether a derivative is off by no more than rounding explains, where the comparison asks for more digits."""
    if got is None or expected is None or got.shape != expected.shape:
        return False
    error = largest(got - expected)
    if name.startswith("fourth") and error <= TERMS * largest(expected):
        return True
    return error <= _of_low_precision(trial, inputs, name, expected) or error <= _of_terms(
        trial, inputs, name, expected
    )


def _of_low_precision(trial: Trial, inputs: Inputs, name: str, expected: Tensor) -> float:
    """Return how far off a derivative may be: 16 times as far as the reference is by its own rounding.

    Each order loses digits: where logits are large, the reference has fewer than the comparison asks for. How many is
    seen in float32, where its error, in units of rounding of the largest element, is that of float64; of several calls
    and all derivatives of the order, since a single one may be right by luck. The function loses its own digits too.
    """
    right, lost = reference(trial.spec), 0.0
    for k in range(PROBES):
        near = _scaled(inputs, [1 + 2 * j * 2.0**-23 for j in (k, -k)])
        low = {n: v.float() if differentiable(v) and v.dtype == torch.float64 else v for n, v in near.values.items()}
        same = {n: v.double() if v is not near.values[n] else v for n, v in low.items()}
        rough, exact = (_penalty(right, Inputs(values, inputs.wrt), trial) for values in (low, same))
        for one, size in ((n, t) for n, t in exact.items() if t is not None and n.split()[0] == name.split()[0]):
            if (other := rough[one]) is not None and other.dtype != expected.dtype and largest(size):
                lost = max(lost, largest(other - size) / largest(size) / torch.finfo(other.dtype).eps)
    return 16 * torch.finfo(expected.dtype).eps * lost * largest(expected)


def _of_terms(trial: Trial, inputs: Inputs, name: str, expected: Tensor) -> float:
    """Return how far off a derivative may be: 8 units of rounding of its largest element between the case and zero.

    Where a function is flat, its derivatives are what is left when terms of an ordinary size cancel: a softmax of large
    logits has a second derivative of 1e-56 there, made of terms near 1. No digit of it is in the answer of anybody.
    """
    near = (_penalty(reference(trial.spec), _scaled(inputs, [0.5**k]), trial)[name] for k in range(PROBES))
    return 8 * torch.finfo(expected.dtype).eps * max(largest(t) for t in near if t is not None)


def _scaled(inputs: Inputs, factors: Sequence[float]) -> Inputs:
    """Return the inputs times the factors, in turn."""
    scaled = {name: inputs.values[name] * factors[k % len(factors)] for k, name in enumerate(inputs.wrt)}
    return Inputs({**inputs.values, **scaled}, inputs.wrt)


def _penalty(function: Callable[..., Any], inputs: Inputs, trial: Trial) -> dict[str, Tensor | None]:
    r"""Return the gradients of `<w, g>`, where `g` is the gradient of `sum(v |y|^2) / 2`, in x and in v; and so on.

    The square makes the cotangent depend on x, so that a function that is linear has a second derivative to get wrong.
    A third one is asked for, since the backward pass of a Function may depend on a Function with a backward of its own,
    and a fourth, since that one may be another Function than the first.
    """
    leaves = inputs.leaves()
    y = tuple(t for t in outputs(function(*inputs.args(leaves))) if differentiable(t))
    v = tuple(t.detach().requires_grad_() for t in like(tuple(t.abs() for t in y), trial.seed))
    loss = torch.stack([(a * (t * t.conj()).real).sum() for a, t in zip(v, y, strict=True)]).sum() / 2
    every = {**{f"`{name}`": leaf for name, leaf in leaves.items()}, "the cotangent": v[0]}
    w = [t.requires_grad_() for t in like(tuple(leaves.values()), trial.seed + 1)]
    last = {**every, "the second cotangent": w[0]}
    found: dict[str, Tensor | None] = {
        **{f"second derivative with respect to {name}": None for name in every},
        **{f"{order} derivative with respect to {name}": None for order in ("third", "fourth") for name in last},
    }
    if not loss.requires_grad:
        return found
    # With L = <v, y o y> / 2 and y = F(x), backward is asked for its cotangent v o y:
    #   g     = dL/dx          = Ds(x)^T (v o y)
    #   <w,g> = <Ds(x) w, v o y>
    #   d/dx  = D^2 s(x)[w]^T (v o y)  +  Ds(x)^T (v o Ds(x) w)      both from backward being differentiated
    #   d/dv  = y o Ds(x) w                                          from its dependence on only the cotangent
    # The second term of d/dx is there for a linear s too (D^2 s = 0): the square puts y into the cotangent.
    first = torch.autograd.grad(loss, list(leaves.values()), create_graph=True, allow_unused=True)
    second = _gradients(_contracted(w, first), every)
    found |= {f"second derivative with respect to {name}": t for name, t in second.items()}
    present = tuple(t for t in second.values() if t is not None)
    third = _gradients(_contracted(like(present, trial.seed + 2), present), last)
    found |= {f"third derivative with respect to {name}": t for name, t in third.items()}
    present = tuple(t for t in third.values() if t is not None)
    fourth = _gradients(_contracted(like(present, trial.seed + 3), present), last)
    return found | {f"fourth derivative with respect to {name}": t for name, t in fourth.items()}


def _contracted(w: Sequence[Tensor], tensors: Sequence[Tensor | None]) -> Tensor:
    """Return `<w, t>`, summed over the tensors that there are."""
    terms = [(a.conj() * t).real.sum() for a, t in zip(w, tensors, strict=True) if t is not None]
    return torch.stack(terms).sum() if terms else torch.zeros(())


def _gradients(total: Tensor, leaves: Mapping[str, Tensor]) -> dict[str, Tensor | None]:
    """Return the gradients of a number, with their graph; None for what it does not depend on."""
    if not total.requires_grad:
        return dict.fromkeys(leaves)
    found = torch.autograd.grad(total, list(leaves.values()), create_graph=True, allow_unused=True)
    return dict(zip(leaves, found, strict=True))


SECOND_ORDER = Law(
    name="second_order",
    family="derivative",
    statement=r"D_x \langle w, \bar{x}(x, v) \rangle = D_x \langle w, Ds(x)^{\top} v \rangle",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
    capability="double_backward",
    specimens=("data_in_backward", "penalty_dropped"),
)
