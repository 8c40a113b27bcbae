"""Whether a second derivative is wrong by another Function in the graph: its gradient is watched, or left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gradspec.law import HOLDS, Reason, Trial
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._differences import inner
from gradspec.laws.tensor.support._graph import nodes_behind
from gradspec.laws.tensor.support._penalty import penalty

#: How little a factor differs from 1 that is said as a part of itself.
_LITTLE = 1e-3


class _Watched:
    """The other Functions in the graph of a gradient: what their backward returns, which may be left out."""

    def __init__(self, own: type | None, *, leaves_out: str = "") -> None:
        self._own, self._leaves_out = own, leaves_out
        #: By the name of each, whether it has given any number that is not zero.
        self.gives: dict[str, bool] = {}
        self.classes: set[type] = set()

    def __call__(self, first: Sequence[Tensor | None], y: Sequence[Tensor]) -> None:
        own = set() if self._own else set(nodes_behind(tuple(y)))
        for node in nodes_behind(tuple(t for t in first if t is not None)):
            called: Any = getattr(node, "_forward_cls", self._own)
            if node not in own and called is not self._own:
                self.classes.add(called)
                self._watch(node, called.__name__)

    def _watch(self, node: Any, name: str) -> None:
        def look(given: tuple[Tensor | None, ...], _: object) -> tuple[Tensor | None, ...] | None:
            self.gives[name] = self.gives.get(name, False) or any(t is not None and bool(t.any()) for t in given)
            if self._leaves_out != name:
                return None
            return tuple(None if t is None else torch.zeros_like(t) for t in given)

        node.register_hook(look)


class Inner(NamedTuple):
    """The part of other Functions in a wrong derivative."""

    #: How one of them makes it wrong, if that is shown.
    reason: Reason | None
    #: Whether the derivative has a term of one of them: it may be wrong, and is not missing.
    has_term: bool
    classes: frozenset[type] = frozenset()


def of_inner_functions(trial: Trial, name: str, got: Tensor | None, expected: Tensor | None) -> Inner:
    """Return what other Functions in the graph have to do with a second derivative that is wrong.

    Args:
        trial: the call.
        name: of the derivative, as `penalty` has it.
        got: what it is.
        expected: what it should be.
    """
    if expected is None:
        return Inner(None, has_term=False)
    got = torch.zeros_like(expected) if got is None else got
    inputs, own, has_term = Inputs.of(trial), trial.spec.autograd_function, False
    watched = _Watched(own)
    penalty(trial.spec.function, inputs, trial.seed, on_first=watched)
    classes = frozenset(watched.classes)
    if lost := [one for one, gives in watched.gives.items() if not gives]:
        said = f"another Function in the graph, `{lost[0]}`, returns a gradient of None or zeros"
        return Inner(Reason(kind="inner", words=said, evidence={"function": lost[0]}), has_term, classes)
    for one in watched.gives:
        found = penalty(trial.spec.function, inputs, trial.seed, on_first=_Watched(own, leaves_out=one)).found[name]
        rest = torch.zeros_like(got) if found is None else found
        if compare(trial, name, got, rest, is_derivative=True) is HOLDS:
            continue
        has_term = True
        if (factor := factor_of(trial, name, got, expected, rest=rest)) is not None:
            off = f"by {abs(factor - 1):.1g} of itself" if abs(factor - 1) < _LITTLE else f"by the factor {factor:.6g}"
            what = "the gradient of" if name.startswith("second") else "a derivative of the backward of"
            said = f"{what} another Function in the graph, `{one}`, is off {off}"
            return Inner(
                Reason(kind="inner", words=said, evidence={"function": one, "factor": factor}), has_term, classes
            )
    return Inner(None, has_term, classes)


def factor_of(trial: Trial, name: str, got: Tensor, expected: Tensor, *, rest: Tensor) -> float | None:
    """Return the factor by which a derivative is off in all that is not in the rest."""
    #   got = r + k (expected - r)
    part = expected - rest
    if not bool(part.any()) or part.is_complex():
        return None
    factor = inner(part, got - rest) / inner(part, part)
    return factor if compare(trial, name, got, rest + factor * part, is_derivative=True) is HOLDS else None
