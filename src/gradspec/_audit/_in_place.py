"""A function that writes to arguments, and autograd knows: torch allows that to no leaf, so a call gets copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from gradspec._audit._subject import Subject
from gradspec._heartbeat import beat
from gradspec.laws.tensor.support._call import differentiable, fresh
from gradspec.spec import Case

#: What torch says of a write to a tensor of which a gradient is asked for.
REFUSED = "a leaf Variable that requires grad"


def written_by(subject: Subject, cases: Sequence[Case]) -> tuple[str, ...]:
    """Return the arguments that the function writes to and marks so: behind the call they are results of it."""
    found: dict[str, None] = {}
    for case in cases:
        given = subject.signature.bind(*tree_map(_result, case.args), **tree_map(_result, dict(case.kwargs)))
        before = {name: _nodes(value) for name, value in given.arguments.items()}
        try:
            subject.call(*given.args, **given.kwargs)
        except (Exception, SystemExit):
            continue  # what the audit says of it, it says of the call as it is
        finally:
            beat()
        found |= dict.fromkeys(name for name, value in given.arguments.items() if _nodes(value) != before[name])
    return tuple(found)


def on_copies(subject: Subject, written: tuple[str, ...]) -> Subject:
    """Return the function that hands itself copies of some arguments."""
    return replace(subject, call=_copying(subject, subject.call, written), written=written)


def written_by_references(subject: Subject, cases: Sequence[Case]) -> tuple[tuple[str, ...], ...]:
    """Return the arguments that the primal writes to, and the surrogate, as `torch.nn.functional.relu_` does."""
    references = (subject.primal, subject.surrogate)
    return tuple(() if one is None else written_by(replace(subject, call=one), cases) for one in references)


def on_copies_too(subject: Subject, written: tuple[tuple[str, ...], ...]) -> Subject:
    """Return the function whose references hand themselves copies of some arguments."""
    primal, surrogate = (
        _copying(subject, call, names) if call is not None and names else call
        for call, names in zip((subject.primal, subject.surrogate), written, strict=True)
    )
    return replace(subject, primal=primal, surrogate=surrogate)


def _copying(subject: Subject, call: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    parameters = list(subject.signature.parameters.values())
    places = {place for place, parameter in enumerate(parameters) if parameter.name in names}
    rest = next(
        (place for place in places if parameters[place].kind is parameters[place].VAR_POSITIONAL), len(parameters)
    )

    @wraps(call)
    def called(*args: Any, **kwargs: Any) -> Any:
        given = [_copies(value) if place in places or place >= rest else value for place, value in enumerate(args)]
        return call(*given, **{name: _copies(value) if name in names else value for name, value in kwargs.items()})

    return called


def _copies(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.clone()
    return type(value)(map(_copies, value)) if type(value) in (list, tuple) else value


def _result(value: Any) -> Any:
    """Return a tensor as the result of another operation, which may be written to."""
    value = fresh(value)
    return value.requires_grad_().clone() if differentiable(value) else value


def _nodes(value: Any) -> list[Any]:
    return [leaf.grad_fn for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]
