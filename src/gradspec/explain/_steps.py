r"""Whether backward leaves out the derivative of a step of forward, or applies it twice.

With the gradient :math:`g`, the right one :math:`g'` and a step :math:`h` at the argument :math:`x`:

.. math::

    g' = J_h(x)^\top g \qquad \text{or} \qquad g = J_h(x)^\top g'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn.functional import normalize, silu, softplus

from gradspec.explain._wrong import Wrong
from gradspec.law import Reason

_Step = Callable[[Tensor], Tensor]
#: What is done to each element by itself.
_OF_ELEMENTS: dict[str, _Step] = {
    "{}.square()": torch.square,
    "{}.sqrt()": torch.sqrt,
    "{}.exp()": torch.exp,
    "{}.log()": torch.log,
    "{}.reciprocal()": torch.reciprocal,
    "{}.sigmoid()": torch.sigmoid,
    "{}.tanh()": torch.tanh,
    "softplus({})": softplus,
    "{}.sin()": torch.sin,
    "{}.cos()": torch.cos,
    "{}.erf()": torch.erf,
    "silu({})": silu,
}
#: What is done along a dimension.
_ALONG: dict[str, Callable[[Tensor, int], Tensor]] = {
    "normalize({}, dim={})": lambda x, dim: normalize(x, dim=dim),
    "{}.softmax({})": lambda x, dim: x.softmax(dim),
    "{}.log_softmax({})": lambda x, dim: x.log_softmax(dim),
    "{0} - {0}.mean({1}, keepdim=True)": lambda x, dim: x - x.mean(dim, keepdim=True),
    "({0} - {0}.mean({1}, keepdim=True)) / {0}.std({1}, correction=0, keepdim=True)": (
        lambda x, dim: (x - x.mean(dim, keepdim=True)) / x.std(dim, correction=0, keepdim=True)
    ),
    "{}.cumsum({})": torch.cumsum,
}


def without_a_step(wrong: Wrong) -> Reason | None:
    """Whether the gradient is right once the derivative of a step is applied to it, or taken away from it."""
    x = wrong.inputs.values[wrong.name].detach()
    got, expected = wrong.got, wrong.expected
    if not x.is_floating_point() or not got.shape == expected.shape == x.shape:
        return None
    for words, step in _steps(wrong.name, x):
        if _is(wrong, step, x, got, expected):
            said = f"right once the derivative of `{words}` is applied to it: backward stops short of that step"
            return Reason(kind="step", words=said, evidence={"step": words, "is": "missing"})
        if _is(wrong, step, x, expected, got):
            said = f"the right one, to which the derivative of `{words}` is applied once more"
            return Reason(kind="step", words=said, evidence={"step": words, "is": "too many"})
    return None


def _steps(name: str, x: Tensor) -> Iterator[tuple[str, _Step]]:
    yield from ((words.format(name), step) for words, step in _OF_ELEMENTS.items())
    for words, along in _ALONG.items():
        for dim in range(x.ndim):
            shown = -1 if dim == x.ndim - 1 else dim
            yield words.format(name, shown), lambda t, along=along, dim=dim: along(t, dim)  # type: ignore[misc]  # a default


def _is(wrong: Wrong, step: _Step, x: Tensor, cotangent: Tensor, right: Tensor) -> bool:
    """Whether the derivative of a step takes one gradient to the other."""
    with torch.enable_grad():
        at = x.clone().requires_grad_()
        (made,) = torch.autograd.grad(step(at), at, cotangent)
    return bool(made.isfinite().all()) and wrong.same(made, right)
