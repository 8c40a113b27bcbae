r"""Selective activation checkpointing gives the same value and the declared gradient, whatever its policy saves.

It runs with a policy that saves the result of each operation, except those that write to an argument, and with one that
saves none. If forward writes to a result, only the second runs: what was saved would be written to once more, which
torch refuses in some places, and in others does without a word.

Why it matters: large models save matrix products and compute everything else again. The second run of forward finds a
saved result by its position among the calls of the same operation.

What breaks it: a forward that runs other operations the second time, such as one that fills a table in its first call:
the gradient then silently uses the result of another operation.

Remedy: run the same operations in each call; fill a table in the constructor of the module, or build it in numpy.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._transform import frozen, judge_run, of_moved_state
from gradspec.laws.tensor.support._written import Writes


def _saves(_: Any, operation: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    schema = getattr(operation, "_schema", None)  # an operation of higher order has none
    is_saved = schema is not None and not schema.is_mutable
    return CheckpointPolicy.MUST_SAVE if is_saved else CheckpointPolicy.PREFER_RECOMPUTE


def _recomputes(_: Any, operation: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    return CheckpointPolicy.PREFER_RECOMPUTE


POLICIES = {"saves all results": _saves, "saves none": _recomputes}


def _writes_to_a_result(trial: Trial, inputs: Inputs) -> bool:
    writes = Writes()
    with writes:
        trial.spec.function(*inputs.args())
    return writes.to_results


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    for name, policy in POLICIES.items():
        if policy is _saves and _writes_to_a_result(trial, inputs):
            continue
        run = partial(
            checkpoint,
            frozen(trial.spec.function, inputs),  # a new one: a call may write to the arguments that it holds
            use_reentrant=False,
            context_fn=partial(create_selective_checkpoint_contexts, policy),
        )
        try:
            finding = judge_run(trial, inputs, f"selective checkpointing that {name}", run)
        except RuntimeError as error:
            if "has been mutated" in str(error):
                continue  # by a backward that writes to it: the policy is at fault
            raise
        if finding is not HOLDS:
            return of_moved_state(trial, inputs, finding)
    return HOLDS


SELECTIVE_CHECKPOINT = Law(
    name="selective_checkpoint",
    family="transforms",
    scope=Scope.COMPILE,
    statement=r"\operatorname{checkpoint}_{\text{policy}}(F) = r",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
    implied_by=("checkpoint",),
    refusable_without="compile",
)
