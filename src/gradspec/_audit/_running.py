"""A function that runs an object, and is given its tensors as arguments too: whatever these are, it runs with them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils._pytree import tree_leaves, tree_map

from gradspec._engine._flat import taken_apart
from gradspec._held import Holders
from gradspec.laws.tensor.support._call import fresh
from gradspec.spec import Case


@dataclass(frozen=True, kw_only=True)
class _Known:
    """A call of which an object holds tensors: its leaves in order, and what holds these."""

    leaves: Sequence[Any]
    holders: Holders
    #: The names of the tensors that an object holds.
    own: Sequence[str]

    @classmethod
    def of(cls, signature: inspect.Signature, case: Case) -> _Known:
        bound, holders = signature.bind(*case.args, **case.kwargs), Holders((case.args, dict(case.kwargs)))
        apart = [part for name, value in bound.arguments.items() for part in taken_apart(name, value).items()]
        own = [name for name, value in apart if id(value) in holders.own]
        return cls(leaves=_leaves(bound), holders=holders, own=own)

    def fits(self, leaves: Sequence[Any]) -> bool:
        """Whether another call has the same objects, and tensors in the same places."""
        return len(leaves) == len(self.leaves) and all(
            isinstance(theirs, Tensor) if isinstance(own, Tensor) else theirs is own or theirs == own
            for own, theirs in zip(self.leaves, leaves, strict=True)
        )

    def renewing(self, leaves: Sequence[Any]) -> Callable[[Any], Any]:
        """Return what puts the tensors of such a call into the objects, and of one that is given twice the first.

        An object runs as the program has it: what requires a gradient there does so whatever else is asked of the call.
        """
        pairs = [(own, t) for own, t in zip(self.leaves, leaves, strict=True) if isinstance(own, Tensor)]
        is_trained = any(t.requires_grad for _, t in pairs) and not _is_transformed()
        new: dict[int, Tensor] = {}
        instead: dict[int, Tensor] = {}
        for own, theirs in pairs:
            if id(own) not in new:
                is_frozen = is_trained and own.requires_grad and not theirs.requires_grad
                keeps = id(own) in self.holders.own and is_frozen
                new[id(own)] = theirs.detach().requires_grad_() if keeps else theirs
            instead[id(theirs)] = new[id(own)]
        renewed = self.holders.renewing(new)
        return lambda leaf: instead[id(leaf)] if id(leaf) in instead else renewed(leaf)


def running_its_own(
    call: Callable[..., Any], signature: inspect.Signature, cases: tuple[Case, ...]
) -> tuple[Callable[..., Any], tuple[Case, ...], frozenset[str]]:
    """Return a call whose modules, methods and closures hold the tensors that it is given, where they hold a case's.

    Args:
        call: what is judged.
        signature: its arguments.
        cases: the calls. Those of which an object holds a tensor get copies of both, which no other has.

    Returns:
        The call, the cases, and the tensors that an object holds, as arguments of a call that is taken apart.
    """
    held = [Holders((case.args, dict(case.kwargs))) for case in cases]
    if not any(one.own for one in held):
        return call, cases, frozenset()
    calls = [one.each(_copied) if one.own else (case.args, case.kwargs) for one, case in zip(held, cases, strict=True)]
    cases = tuple(replace(case, args=args, kwargs=named) for case, (args, named) in zip(cases, calls, strict=True))
    known = [_Known.of(signature, case) for case in cases]

    def with_its_own(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        leaves = _leaves(bound)
        fitting = next((one for one in known if one.fits(leaves)), None)
        if fitting is None:
            return call(*args, **kwargs)
        args, kwargs = tree_map(fitting.renewing(leaves), (args, kwargs))
        return call(*args, **kwargs)

    with_its_own.__module__ = getattr(call, "__module__", None) or "__main__"
    return with_its_own, cases, frozenset(name for one in known for name in one.own)


def _leaves(bound: inspect.BoundArguments) -> list[Any]:
    """Return the tensors and the rest of what a call is given, and of what it leaves as it is by default."""
    full = inspect.BoundArguments(bound.signature, bound.arguments.copy())
    full.apply_defaults()
    return tree_leaves(dict(full.arguments))


def _is_transformed() -> bool:
    """Whether a transform has a hold on the tensors: what it has put around them is not taken off."""
    return torch._C._functorch.maybe_current_level() is not None or forward_ad._current_level >= 0


def _copied(tensor: Tensor) -> Tensor:
    copy: Tensor = fresh(tensor)
    return copy.requires_grad_(tensor.requires_grad)
