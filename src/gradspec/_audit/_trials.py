"""A call of a function without a spec, as the laws look at it."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from gradspec._audit._eager_spec import eager_spec
from gradspec._audit._measured import Measured
from gradspec._audit._subject import Subject
from gradspec._engine._flat import flattened
from gradspec.law import Trial, TrialOf
from gradspec.laws.tensor.support._call import bound, differentiable
from gradspec.laws.tensor.support._replay import replayed
from gradspec.profile import Profile
from gradspec.spec import Case


def flat_trial(subject: Subject, case: Case, measured: Measured, profile: Profile, seed: int) -> Trial:
    """Return the call of a case with one name an argument."""
    trial = flattened(TrialOf(spec=eager_spec(subject, (case,), measured), case=case, profile=profile, seed=seed))
    return replayed(trial) if measured.is_noisy else trial


def takes_gradient(subject: Subject, case: Case, name: str) -> bool:
    """Whether an argument of a call is, or holds, a tensor that a gradient could reach."""
    return any(map(differentiable, tree_leaves(bound(subject.signature, case).get(name))))


def copied(value: Any) -> Any:
    """Return arguments whose tensors have memory of their own."""
    return tree_map(lambda leaf: leaf.detach().clone() if isinstance(leaf, Tensor) else leaf, value)
