"""The caller's marks: arguments that are trained, and arguments that get no gradient on purpose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_map

from gradspec._audit._measured import Measured
from gradspec._audit._subject import Subject
from gradspec._engine._flat import taken_apart
from gradspec.laws.tensor.support._call import bound, differentiable
from gradspec.laws.tensor.support._dense import is_sparse
from gradspec.spec import Case


def with_marks(
    subject: Subject,
    cases: tuple[Case, ...],
    wrt: Sequence[str] = (),
    zero_gradient: Sequence[str] = (),
    noise: Sequence[str] = (),
) -> tuple[Subject, tuple[Case, ...]]:
    """Return what is audited with the tensors that are marked in each call, and the calls without their marks.

    The arguments that `noise` names get no gradient.
    A tensor is marked if it requires a gradient, as a parameter of a module does, or if `wrt` names it.

    Raises:
        ValueError: a name is of no floating-point argument of any call, or is both marked and declared to be zero; a
            sparse tensor is marked; or no call has a floating-point argument, unless it is of an operator.
    """
    every = [one for case in cases for one in _given(subject, case)]
    tensors = [value for _, _, value in every if isinstance(value, Tensor)]
    moving = [value for name, _, value in every if isinstance(value, Tensor) and name not in subject.fixed]
    if subject.operator is None and tensors and not any(map(differentiable, moving)):
        kind = " but frozen ones" if any(map(differentiable, tensors)) else ""
        raise ValueError(
            f"no call of {subject.name} has a floating-point tensor{kind}, so none has a gradient to judge: give it "
            "one, as randn(4)"
        )
    given = (("wrt", wrt), ("zero_gradient", zero_gradient), ("noise", noise))
    named, zero, drawn = (_leaves(subject, cases, *one) for one in given)
    zero |= drawn  # no gradient flows to it, on purpose
    if both := sorted(named & zero):
        other = "noise" if both[0] in drawn else "zero_gradient"
        raise ValueError(f"`{both[0]}` is named by wrt and by {other}: leave one of them out")
    marked = {
        case.name: frozenset(
            leaf
            for name, leaf, value in _given(subject, case)
            if leaf in named
            or (name in subject.state and name not in subject.fixed)
            or (isinstance(value, Tensor) and value.requires_grad)
        )
        for case in cases
    }
    sparse = {leaf: name for name, leaf, value in every if is_sparse(value) and differentiable(value)}
    if trained := [leaf for leaf in sparse if any(leaf in leaves for leaves in marked.values())]:
        raise ValueError(
            f"`{trained[0]}` is sparse, and no law judges the gradient of a sparse tensor: pass its values instead"
        )
    subject = replace(subject, fixed=subject.fixed | set(sparse.values()))
    unmarked = tuple(
        replace(case, args=tree_map(_without_graph, case.args), kwargs=tree_map(_without_graph, dict(case.kwargs)))
        for case in cases
    )
    return replace(subject, marked=marked, zero=zero), unmarked


def check_zero(subject: Subject, cases: Sequence[Case], names: Sequence[str], measured: Measured) -> None:
    """Refuse to take a gradient for zero that is not.

    Raises:
        ValueError: an argument that `zero_gradient` names gets one that is not zero.
    """
    if not measured.is_repeatable or measured.raised or measured.no_arithmetic:
        return  # nothing was measured
    for leaf in sorted(_leaves(subject, cases, "zero_gradient", names) - set(measured.zero)):
        name = subject.parameter_of(leaf)
        among = measured.partly.get(name)
        if name in measured.wrt and (among is None or f"{name}[{leaf[len(name) + 1 :]}]" in among):
            raise ValueError(
                f"zero_gradient names `{subject.state.get(leaf, leaf)}`, and backward gives it a gradient that is not "
                "zero: leave the name out, or mend backward"
            )


def _leaves(subject: Subject, cases: Sequence[Case], option: str, names: Sequence[str]) -> frozenset[str]:
    """Return the tensors that names stand for: `xs` for all of a list, `xs[0]` for one, `fc.weight` of a module."""
    if isinstance(names, str):
        raise ValueError(f"{option} is the text {names!r}: write a tuple of names, as ({names!r},)")
    given = [one for case in cases for one in _given(subject, case)]
    of_state = {full: name for name, full in subject.state.items()}
    found: set[str] = set()
    for written in names:
        own = of_state.get(written.removeprefix("self."), written) if written not in subject.state else written
        flat = "_".join(part.strip("]'\"") for part in own.split("["))
        mine = {leaf for name, leaf, value in given if flat in (name, leaf) and differentiable(value)}
        if not mine:
            known = dict.fromkeys(subject.state.get(name, name) for name, _, value in given if differentiable(value))
            raise ValueError(
                f"{option} names {written!r}, and no call of {subject.name} has a floating-point tensor of this name"
                + (f": there are {', '.join(known)}" if known else "")
            )
        found |= mine
    return frozenset(found)


def _given(subject: Subject, case: Case) -> Iterator[tuple[str, str, Any]]:
    """Yield each argument of a call, the names of what it holds as the laws have them, and their values."""
    for name, value in bound(subject.signature, case).items():
        yield from ((name, leaf, held) for leaf, held in taken_apart(name, value).items())


def _without_graph(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) and value.requires_grad else value
