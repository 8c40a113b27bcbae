"""The mutants that nothing can tell from the original, each with the proof; any other survivor is a defect."""

from __future__ import annotations

_REDUCED = (
    "Autograd alone calls this backward, and sums what it returns to the shape of the argument: over a first dimension "
    "of size 1 that sum is the gradient itself."
)
_BATCH = (
    "Its cotangent has the dimension of the batch, always: the call refuses an input without one. So the slice is "
    "there; the sum of an empty slice is 0, and adding it changes no number."
)
_NO_NODE = (
    "It is called on detached inputs alone, so that no node of a graph is made: its ctx dies with the call, "
    "and what it keeps with it."
)
#: The name of a mutant to why no observation of the function can tell it from the original.
EQUIVALENT: dict[str, str] = {
    "Product.gradient_of_another_shape": _REDUCED,
    "Transposed.gradient_of_another_shape": _REDUCED,
    "ScaledCopy.gradient_of_another_shape": _REDUCED,
    "LossGradient.gradient_of_another_shape": _REDUCED,
    "Gradients.gradient_of_another_shape": _REDUCED,
    "Values.input_on_ctx": _NO_NODE,
    "Values.output_on_ctx": _NO_NODE,
    "Product.needs_a_batch_dimension": _BATCH,
    "Transposed.needs_a_batch_dimension": _BATCH,
    "InstanceDiscriminationLoss.needs_a_batch_dimension": _BATCH,
    "LinearAverageOp.needs_a_batch_dimension": _BATCH,
    "LinearCrossEntropy.needs_a_batch_dimension": _BATCH,
    "LossGradient.needs_a_batch_dimension": _BATCH,
    "Gradients.needs_a_batch_dimension": _BATCH,
    "ScaledCopy.not_allowed_in_graph": (
        "ScaledCopy is called inside GradFactor.apply and GradMultiply.apply alone, and each of these is one call to "
        "Dynamo, so that Dynamo never meets ScaledCopy and never asks whether it is allowed."
    ),
    "Gradients.not_allowed_in_graph": (
        "A compiled backward pass of torch 2.13 that may not have it in its graph ends the graph before it and calls "
        "it as it is: the numbers are the same, and no law asks for one graph there. Torch 2.11 raises, as the law "
        "`compiled_autograd` finds; a test of the function asks for one graph."
    ),
}
