"""Which laws can judge a function that has no spec."""

from __future__ import annotations

from collections.abc import Sequence

from gradspec._audit._measured import Measured
from gradspec._audit._subject import Subject
from gradspec.law import Law
from gradspec.laws.tensor._surrogate import SURROGATE
from gradspec.laws.tensor._vjp import VJP
from gradspec.profile import Profile

#: What judges nothing of a function whose calls draw the same noise: `rand_like` fills a transposed tensor in the order
#: of memory, so that `layout` would compare one noise with another; another dtype draws other numbers, and so does a
#: batch; a draw that a selective checkpoint has saved does not move the generator for the next one, and a replayed CUDA
#: graph draws what no other call draws.
_NOT_NOISE = ("layout", "vmap", "autocast", "precision", "selective_checkpoint", "cuda_graph")
#: The same where backward draws: under a transform its seed is not where the pass is.
_NOT_NOISE_OF_BACKWARD = (
    "layout",
    "cotangent_layout",
    "batched_cotangent",
    "precision",
    "checkpoint",
    "selective_checkpoint",
    "cuda_graph",
)
#: What judges a function whose calls differ where there is no reference: they are compared with nothing.
_OF_STATE = (
    "inputs_untouched",
    "cotangents_untouched",
    "declared_writes",
    "uninitialized_memory",
    "global_state",
    "ctx_clean",
    "freed",
)


def selected(laws: Sequence[Law], profile: Profile, measured: Measured, subject: Subject) -> list[Law]:
    """Return the laws that can judge a function or an operator with what is given of it.

    Raises:
        ValueError: there is none among those that are asked for.
    """
    kind = "function" if subject.operator is None else "operator"
    named = profile.laws or tuple(law.name for law in laws)
    if subject.has_reference and SURROGATE.name in named and VJP.name not in named:
        # It judges backward then, and `surrogate` what it is compared with alone.
        laws, named = laws if VJP in laws else [*laws, VJP], (*named, VJP.name)
    chosen = [law for law in laws if law.name in named and law.judges(kind) and can_judge(law, subject)]
    why = "" if measured.is_repeatable else "its calls differ: audit a core that takes noise and state as arguments"
    if measured.keeps_state and not subject.has_reference:
        chosen = [law for law in chosen if law.name in _OF_STATE]
    if measured.noisy_forward:
        chosen = [law for law in chosen if law.cost != "compile" and law.name not in _NOT_NOISE]
    if measured.noisy_backward:
        chosen = [
            law
            for law in chosen
            if law.capability in (None, "double_backward") and law.name not in _NOT_NOISE_OF_BACKWARD
        ]
    if not chosen:
        asked = ", ".join(profile.laws or [law.name for law in laws])
        raise ValueError(f"no law is left of {asked}: {why or 'it compares with a reference, and none is given'}")
    return chosen


def can_judge(law: Law, subject: Subject) -> bool:
    """Return whether a law has what it compares with: `primal` needs what the values should be."""
    return not law.needs_spec or (subject.has_reference and (law.name != "primal" or subject.primal is not None))
