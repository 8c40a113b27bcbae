"""The documented functions, under their published names, and their specs."""

from gradspec.functions._grad_factor import GRAD_FACTOR, GradFactor, grad_factor
from gradspec.functions._grad_multiply import GRAD_MULTIPLY, GradMultiply, grad_multiply
from gradspec.functions._instance_discrimination import (
    INSTANCE_DISCRIMINATION_LOSS,
    InstanceDiscriminationLoss,
    instance_discrimination_loss,
)
from gradspec.functions._linear_average import LINEAR_AVERAGE_OP, LinearAverageOp
from gradspec.functions._linear_cross_entropy import (
    LINEAR_CROSS_ENTROPY,
    LinearCrossEntropy,
    linear_cross_entropy,
    merge_by_log_sum_exp,
)
from gradspec.functions._shake_shake import SHAKE_SHAKE, ShakeShake, mix_branches, shake_shake

#: The specs, in the order of the site.
FUNCTIONS = (
    GRAD_FACTOR,
    GRAD_MULTIPLY,
    SHAKE_SHAKE,
    LINEAR_AVERAGE_OP,
    INSTANCE_DISCRIMINATION_LOSS,
    LINEAR_CROSS_ENTROPY,
)

__all__ = [
    "FUNCTIONS",
    "GRAD_FACTOR",
    "GRAD_MULTIPLY",
    "INSTANCE_DISCRIMINATION_LOSS",
    "LINEAR_AVERAGE_OP",
    "LINEAR_CROSS_ENTROPY",
    "SHAKE_SHAKE",
    "GradFactor",
    "GradMultiply",
    "InstanceDiscriminationLoss",
    "LinearAverageOp",
    "LinearCrossEntropy",
    "ShakeShake",
    "grad_factor",
    "grad_multiply",
    "instance_discrimination_loss",
    "linear_cross_entropy",
    "merge_by_log_sum_exp",
    "mix_branches",
    "shake_shake",
]
