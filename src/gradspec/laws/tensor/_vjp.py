r"""Backward applies the transposed derivative of the surrogate.

Why it matters: this is the declared gradient; where it is deliberately not the derivative of forward, gradcheck
cannot judge it.

What breaks it: a factor forgotten, a flipped sign, an operand transposed, a relative error of 1e-6 in one element.

Remedy: write backward for the surrogate: what it returns for `x` is the cotangent times the derivative of the
surrogate.
"""

from __future__ import annotations

from typing import Any

import torch

from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable
from gradspec.laws.tensor._call import Inputs, cotangents, outputs, vjp
from gradspec.laws.tensor._compare import compare_all
from gradspec.laws.tensor._reference import on_spec_side, reference


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    y, graphs = _graphs(trial, inputs)
    for name, v in cotangents(trial, y):
        if graphs is not None and graphs.agree(trial, v):
            continue
        graphs = None
        v = dict(cotangents(trial, y))[name]  # the function may have changed the other one
        expected = vjp(reference(trial.spec), inputs, v)  # first: the function may change v
        got = vjp(trial.spec.function, inputs, v)
        finding = compare_all(trial, f"gradient ({name} cotangent)", got, expected)
        if finding is not HOLDS:
            return finding
    return HOLDS


class _Graphs:
    """One graph of the function and one of the surrogate, over which one pass of the engine goes for each cotangent.

    It is the short way to `holds`: most of the time of a small check is the start of forward and backward passes. What
    does not agree here is judged on fresh graphs, one at a time; that one graph serves twice is another law.
    """

    def __init__(self, trial: Trial, inputs: Inputs) -> None:
        surrogate, function = trial.spec.surrogate, trial.spec.function
        self.right, self.ours = inputs.leaves(), inputs.leaves()
        self.s = outputs(on_spec_side("surrogate", surrogate, *inputs.args(self.right)))
        self.y = outputs(function(*inputs.args(self.ours)))

    def same_form(self) -> bool:
        """Whether one cotangent fits both, and each output carries a gradient."""
        return _form(self.s) == _form(self.y) and all(t.requires_grad for t in (*self.s, *self.y))

    def agree(self, trial: Trial, v: tuple[torch.Tensor, ...]) -> bool:
        """Return whether the gradients agree for a cotangent; it goes to the function as it is."""
        try:
            got = torch.autograd.grad(
                (*self.s, *self.y),
                (*self.right.values(), *self.ours.values()),
                (*(w.clone() for w in v), *v),
                retain_graph=True,
            )
        except Exception:
            return False
        half = len(self.ours)
        expected, given = dict(zip(self.right, got[:half], strict=True)), dict(zip(self.ours, got[half:], strict=True))
        return compare_all(trial, "gradient", given, expected) is HOLDS


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
    specimens=("factor_forgotten", "sign_flipped", "off_by_a_millionth", "tuple_argument"),
)
