"""What plain calls of a function show: where gradients flow, what is shared, whether noise is drawn."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradspec.law import shown
from gradspec.laws.tensor.support._call import differentiable, fresh, gradients, like, outputs
from gradspec.laws.tensor.support._memory import overlap
from gradspec.spec import Case
from gradspec.spec._sheet import forward_signature


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What plain calls of a function show."""

    #: The arguments to which a gradient flows, in the order of the call.
    wrt: tuple[str, ...] = ()
    #: The argument of which the output is a view.
    view_of: str | None = None
    #: Whether two calls with the same arguments differ.
    random: bool = False
    #: The outputs that carry no gradient in any case, though another one does: `mark_non_differentiable`, integers.
    constant: frozenset[int] = frozenset()
    #: What the first plain call that failed raised, and on which case.
    raised: str = ""

    def remarks(self) -> Iterator[str]:
        """Yield what a reader of the report should know."""
        if self.raised:
            yield f"A plain call raises: {self.raised}."
            if "in-place operation" in self.raised:
                yield (
                    "The function writes to an argument of which a gradient is asked for, and torch allows that to no "
                    "leaf: audit a function that hands it a copy, as `lambda x: Name.apply(x.clone())` does."
                )
        elif not self.wrt:
            yield "No gradient reaches any argument: the output is connected to no graph."
        if self.random:
            yield (
                "Two calls with the same arguments differ: the function draws noise. Its calls are seeded alike here, "
                "and laws that trace or batch a call are left out: audit a core that takes the noise as an argument."
            )


def signature_of(call: Callable[..., Any], implementation: type | None, case: Case) -> inspect.Signature:
    """Return the arguments of a call: those of forward without ctx, or of the function, or as many as the case has."""
    try:
        read = inspect.signature(call) if implementation is None else forward_signature(implementation)
        found = list(read.parameters.values())
    except (TypeError, ValueError):  # a function in C has no signature to read
        found = []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not found or any(parameter.kind not in kinds for parameter in found[: len(case.args)]):
        found = [inspect.Parameter(f"x{k}", kinds[1]) for k in range(1, len(case.args) + 1)]
    # What the laws bind is given by position: torch's own `apply` takes nothing else.
    kept = [parameter for parameter in found if parameter.kind in kinds]
    return inspect.Signature(
        [parameter.replace(kind=kinds[1], annotation=inspect.Parameter.empty) for parameter in kept]
    )


def measure(call: Callable[..., Any], signature: inspect.Signature, cases: tuple[Case, ...], seed: int) -> Measured:
    """Call a function as a user does, on each case."""
    wrt: set[str] = set()
    carrying, silent = set[int](), set[int]()
    view_of, random, raised = None, False, ""
    for case in cases:
        try:
            values = bound(signature, case)
            leaves = {n: fresh(v).requires_grad_() for n, v in values.items() if differentiable(v)}
            args = {n: leaves[n] if n in leaves else fresh(v) for n, v in values.items()}
            y = outputs(call(*args.values()))
            again = outputs(call(*args.values()))
            random |= not all(map(_same, y, again))
            got = gradients(y, leaves, like(y, seed))
        except (Exception, SystemExit) as error:
            raised = raised or f"{shown(error)} (case {case.name!r})"
            continue
        wrt |= {n for n, gradient in got.items() if gradient is not None}
        for k, t in enumerate(y):
            (carrying if t.requires_grad else silent).add(k)
        shared = [n for n, v in args.items() if isinstance(v, Tensor) and any(overlap(t, v) for t in y)]
        view_of = view_of or next(iter(shared), None)
    order = tuple(n for n in signature.parameters if n in wrt)
    constant = frozenset(silent - carrying) if carrying else frozenset[int]()
    return Measured(wrt=order, view_of=view_of, random=random, constant=constant, raised=raised)


def bound(signature: inspect.Signature, case: Case) -> dict[str, Any]:
    """Return the arguments of a case by name, defaults included."""
    given = signature.bind(*case.args, **case.kwargs)
    given.apply_defaults()
    return dict(given.arguments)


def floating(signature: inspect.Signature, case: Case) -> tuple[str, ...]:
    """Return the arguments of a case to which a gradient could flow."""
    return tuple(name for name, value in bound(signature, case).items() if differentiable(value))


def _same(a: Tensor, b: Tensor) -> bool:
    return torch.equal(torch.nan_to_num(a.detach()), torch.nan_to_num(b.detach()))
