"""The mutants that nothing can tell from the original, each with the proof; any other survivor is a defect."""

from __future__ import annotations

#: The name of a mutant to why no observation of the function can tell it from the original.
EQUIVALENT: dict[str, str] = {
    "ScaledCopy.not_allowed_in_graph": (
        "ScaledCopy is called inside GradFactor.apply and GradMultiply.apply alone, and each of these is one call to "
        "Dynamo, so that Dynamo never meets ScaledCopy and never asks whether it is allowed."
    ),
}
