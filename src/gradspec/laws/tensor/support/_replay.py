"""A function that draws noise inside, replayed: the calls that a law compares draw from one state of the generators.

Forward draws from that state, and so do the primal and the surrogate; backward goes on where forward has ended. So a
primal that draws as forward does has the same numbers, and a gradient of other numbers than the output's differs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from gradspec._process_state import seed_torch
from gradspec.law import Law, Trial
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs
from gradspec.laws.tensor.support._generators import moved, states_of_torch
from gradspec.laws.tensor.support._held_still import Backward, held_still
from gradspec.laws.tensor.support._reference import is_stand_in
from gradspec.spec import FunctionSpec
from gradspec.spec._fault import spec_faults
from gradspec.spec._function_parts import REPLAYED
from gradspec.spec._gradient import gradient_of

#: What is said of a law that has nothing to compare there.
INCOMPARABLE = "the function draws noise, and draws other numbers here than in a plain call"
#: A seed that no function is likely to set itself.
_ASIDE = 2**40 + 57
#: The laws that compare calls which draw other numbers by their nature: in another dtype, for other strides, of a
#: batch, in a program. A draw that a selective checkpoint has saved does not move the generator for the next one.
_OTHER_NUMBERS = ("layout", "autocast", "precision", "selective_checkpoint", "vmap", "exported_operator")
#: Those in which backward draws other numbers, if it draws: for a cotangent with other strides.
_OF_BACKWARD = ("cotangent_layout",)


def draws_inside(trial: Trial) -> bool:
    """Return whether a spec says that its function draws inside: by `noise`, or by what draws itself in it."""
    return trial.spec.noise == REPLAYED or bool(_drawn_by_primal(trial) or drawn_behind(trial))


def drawn_behind(trial: Trial) -> tuple[str, ...]:
    """Return the generators from which the gradient of a spec draws more than its primal, and backward draws, too."""
    spec = awake(trial).spec
    if spec.surrogate is spec.primal or is_stand_in(spec.surrogate):
        return ()
    inputs = Inputs.of(trial)
    leaves = inputs.leaves()
    try:
        with torch.random.fork_rng(devices=_devices()), spec_faults("surrogate"):
            seed_torch(_ASIDE)
            start = states_of_torch()
            y = outputs(spec.surrogate(*inputs.args(leaves)))
            if gradient_of(spec.surrogate) is not None:
                seed_torch(_ASIDE)  # it draws first what forward has drawn
                gradients(y, leaves, like(y, _ASIDE))
            end = states_of_torch()
            if not (drawn := moved(start, end)):
                return ()  # as most do: every law asks this
            seed_torch(_ASIDE)
            spec.primal(*inputs.args())
            behind = [name for name in moved(states_of_torch(), end) if name in drawn]
            if not behind:
                return ()
            y = outputs(spec.function(*inputs.args(leaves)))
            before = states_of_torch()
            gradients(y, leaves, like(y, _ASIDE))
            return tuple(name for name in moved(before, states_of_torch()) if name in behind)
    except Exception:
        return ()  # the laws that need it say so


def draws_against_function(trial: Trial) -> bool:
    """Return whether the primal of a spec draws and the function does not: one of them is wrong."""
    return bool(_drawn_by_primal(trial)) and not _drawn_by(awake(trial).spec.function, trial)


def own_generators(trial: Trial) -> tuple[str, ...]:
    """Return the names of the generators from which forward may draw."""
    if trial.spec.noise == REPLAYED:
        return tuple(states_of_torch())
    return _drawn_by_primal(trial)


def is_replayed(trial: Trial) -> bool:
    """Return whether the calls of a trial are to be replayed: they draw, from torch's generator or from a given one."""
    return draws_inside(trial) or bool(given_states(trial))


def is_incomparable(law: Law, trial: Trial) -> bool:
    """Return whether a law compares calls that draw other numbers although they are replayed."""
    if law.name in _OF_BACKWARD:
        return bool(drawn_behind(trial))
    return is_replayed(trial) if law.name in _OTHER_NUMBERS else law.cost == "compile" and is_asleep(trial)


def replayed(trial: Trial, backward: Backward = "after", declared: Backward = "alike") -> Trial:
    """Return the trial of a function that draws the same numbers at each call, and so does what it is compared with.

    Args:
        trial: the trial.
        backward: from where its backward draws.
        declared: from where a declared gradient draws: what forward has drawn, and then its own.
    """
    spec, given = awake(trial).spec, given_states(trial)

    def still(call: Callable[..., Any], way: Backward = "") -> Callable[..., Any]:
        same = held_still(call, trial.seed, forward=True, backward=way, given=given)
        marks = {key: mark for key, mark in getattr(call, "__dict__", {}).items() if key.startswith("gradspec_")}
        same.__dict__.update(marks, gradspec_awake=call)
        return same

    def still_role(call: Callable[..., Any]) -> Callable[..., Any]:
        if gradient_of(call) is not None:
            return still(call, declared)
        return still(call, backward if is_stand_in(call) else "")  # a stand-in is the function itself

    primal = still_role(spec.primal)
    # An operator finds its function by its name: what is replayed is a function.
    plain = {field.name: getattr(spec, field.name) for field in fields(FunctionSpec) if field.init}
    plain |= {
        "function": still(spec.function, backward),
        "primal": primal,
        "surrogate": primal if spec.surrogate is spec.primal else still_role(spec.surrogate),
        "gradient": None,  # the surrogate is marked with it
        "implementation": spec.autograd_function,
    }
    return replace(trial, spec=FunctionSpec(**plain))


def is_asleep(trial: Trial) -> bool:
    """Return whether the calls of a trial are replayed."""
    return hasattr(trial.spec.function, "gradspec_awake")


def awake(trial: Trial) -> Trial:
    """Return the trial of the function as it is, of one that is replayed."""
    if not is_asleep(trial):
        return trial
    roles = {role: getattr(trial.spec, role).gradspec_awake for role in ("function", "primal", "surrogate")}
    return replace(trial, spec=replace(trial.spec, **roles))


def given_states(trial: Trial) -> dict[torch.Generator, Tensor]:
    """Return the generators among the arguments of a case, and the states that they have now."""
    values = tree_leaves((trial.case.args, dict(trial.case.kwargs)))
    return {value: value.get_state() for value in values if isinstance(value, torch.Generator)}


def _drawn_by_primal(trial: Trial) -> tuple[str, ...]:
    """Return the generators of torch from which the primal draws; none where the function stands in for it."""
    primal = getattr(trial.spec.primal, "gradspec_awake", trial.spec.primal)
    return () if is_stand_in(primal) else _drawn_by(primal, trial)


def _drawn_by(call: Callable[..., Any], trial: Trial) -> tuple[str, ...]:
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=_devices()), spec_faults("primal"):
            seed_torch(_ASIDE)  # of one that seeds itself, an earlier call has left the state that this one leaves
            before = states_of_torch()
            call(*Inputs.of(trial).args())
            return tuple(moved(before, states_of_torch()))
    except Exception:
        return ()  # the laws that need it say so


def _devices() -> list[int]:
    """Return the CUDA devices whose generators may have been drawn from."""
    return list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
