r"""The derivatives of a gradient penalty, to the fourth order, and whether torch's own are what they say.

With :math:`L = \langle v, y \circ y \rangle / 2` and :math:`y = F(x)`, backward is asked for its cotangent
:math:`v \circ y`, so that a function that is linear has a second derivative to get wrong. Each order is the gradient
of the one before, times weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gradspec.laws.tensor.support._call import Inputs, differentiable, like, outputs
from gradspec.laws.tensor.support._dense import dense
from gradspec.laws.tensor.support._differences import double, inner, slope

#: The orders, and how large numbers from -9 to 9 make a derivative, by how many of them it is multiplied.
TIMES = {"second": 9.0, "third": 81.0, "fourth": 729.0}
#: The names of what is differentiated beside the arguments.
COTANGENT, SECOND_COTANGENT = "the cotangent", "the second cotangent"


class Penalty(NamedTuple):
    """The derivatives of each order by name, and the number whose gradient each order is."""

    #: "third derivative with respect to `x`": None where the order does not depend on it.
    found: dict[str, Tensor | None]
    #: By the word of the order: 0 where there is no graph.
    totals: dict[str, Tensor]
    #: Whether the first derivatives are sparse: torch keeps no graph of the derivative of what makes a sparse tensor.
    sparse: bool = False


def penalty(
    function: Callable[..., Any],
    inputs: Inputs,
    seed: int,
    *,
    moved: Mapping[str, Tensor] | None = None,
    on_first: Callable[[Sequence[Tensor | None], Sequence[Tensor]], object] = lambda first, y: None,
) -> Penalty:
    r"""Return the gradients of `<w, g>`, where `g` is the gradient of `sum(v |y|^2) / 2`, in x and in v; and so on.

    A third order is asked for, since the backward pass of a Function may depend on a Function with a backward of its
    own, and a fourth, since that one may be another Function than the first. The weights are drawn by name: where one
    function returns no gradient and another returns zeros, the same number is differentiated.

    Args:
        function: what is differentiated, called with all arguments.
        inputs: the arguments.
        seed: where v and the weights come from.
        moved: what is added to an argument (its name in backquotes) or to a cotangent before anything is computed.
        on_first: called with the gradients and the outputs, before a gradient is differentiated.
    """
    moved = moved or {}
    leaves = inputs.leaves()
    every = {f"`{name}`": leaf for name, leaf in leaves.items()}
    _shift(every, moved)
    y = tuple(t for t in outputs(function(*inputs.args(leaves))) if differentiable(t))
    v = like(tuple(t.detach().abs() for t in y), seed)
    w = like(inputs.tensors(), seed + 1)
    every |= {COTANGENT: v[0]} if v else {}
    last = {**every, SECOND_COTANGENT: w[0]}
    _shift({COTANGENT: every.get(COTANGENT, w[0]), SECOND_COTANGENT: w[0]}, moved)
    for tensor in (*v, *w):
        tensor.requires_grad_()
    names = {"second": every, "third": last, "fourth": last}
    found: dict[str, Tensor | None] = {_named(order, name): None for order, by in names.items() for name in by}
    totals = {order: torch.zeros(()) for order in names}
    loss = _sum([(a * (t * t.conj()).real).sum() for a, t in zip(v, y, strict=True)]) / 2
    if not loss.requires_grad:
        return Penalty(found, totals)
    #   g     = dL/dx          = Ds(x)^T (v o y)
    #   <w,g> = <Ds(x) w, v o y>
    #   d/dx  = D^2 s(x)[w]^T (v o y)  +  Ds(x)^T (v o Ds(x) w)      both from backward being differentiated
    #   d/dv  = y o Ds(x) w                                          from its dependence on only the cotangent
    # The second term of d/dx is there for a linear s too (D^2 s = 0): the square puts y into the cotangent.
    first = list(_gradients(loss, leaves).values())
    on_first(first, y)
    before: Sequence[Tensor | None] = [dense(t) for t in first]
    weights: Sequence[Tensor] = w
    for k, (order, by) in enumerate(names.items()):
        totals[order] = _contracted(weights, before)
        now = {name: dense(t) for name, t in _gradients(totals[order], by).items()}
        found |= {_named(order, name): t for name, t in now.items()}
        before, weights = list(now.values()), like(tuple(t.detach() for t in by.values()), seed + 2 + k)
    return Penalty(found, totals, any(t is not None and t.layout != torch.strided for t in first))


def is_no_slope(function: Callable[..., Any], inputs: Inputs, seed: int, name: str) -> bool:
    """Whether a derivative of a function, as autograd gives it, is clearly not what central differences give.

    torch's own formulas have errors, too: the third derivative of its batch normalisation is one. What is compared
    with such a reference says nothing of the function.

    Args:
        function: what is differentiated.
        inputs: the arguments.
        seed: where the weights come from.
        name: "third derivative with respect to `x`".
    """
    wide = Inputs({n: double(t) if isinstance(t, Tensor) else t for n, t in inputs.values.items()}, inputs.wrt)
    order, _, argument = name.partition(" derivative with respect to ")
    exact = penalty(function, wide, seed).found[name]
    if exact is None:
        return False
    u = like((exact.detach(),), seed + 7)[0] / 9

    def along(step: float) -> float:
        return float(penalty(function, wide, seed, moved={argument: step * u}).totals[order].detach())

    numeric, analytic = slope(along), inner(exact, u)
    scale = max(abs(analytic), abs(numeric.value))
    return numeric.is_clear(scale) and not numeric.agrees(analytic, scale)


def _named(order: str, name: str) -> str:
    return f"{order} derivative with respect to {name}"


def _shift(tensors: Mapping[str, Tensor], moved: Mapping[str, Tensor]) -> None:
    with torch.no_grad():
        for name, tensor in tensors.items():
            if name in moved:
                tensor.add_(moved[name])


def _sum(terms: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(terms)).sum() if terms else torch.zeros(())


def _contracted(w: Sequence[Tensor], tensors: Sequence[Tensor | None]) -> Tensor:
    """Return `<w, t>`, summed over the tensors that there are."""
    return _sum([(a.conj() * t).real.sum() for a, t in zip(w, tensors, strict=True) if t is not None])


def _gradients(total: Tensor, leaves: Mapping[str, Tensor]) -> dict[str, Tensor | None]:
    """Return the gradients of a number, with their graph; None for what it does not depend on."""
    if not total.requires_grad:
        return dict.fromkeys(leaves)
    found = torch.autograd.grad(total, list(leaves.values()), create_graph=True, allow_unused=True)
    return dict(zip(leaves, found, strict=True))
