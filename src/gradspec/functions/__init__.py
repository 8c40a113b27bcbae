"""The documented functions, under their published names, and their specs."""

from gradspec.functions._grad_factor import GRAD_FACTOR, GradFactor, grad_factor
from gradspec.functions._grad_multiply import GRAD_MULTIPLY, GradMultiply, grad_multiply
from gradspec.functions._shake_shake import SHAKE_SHAKE, ShakeShake, mix_branches, shake_shake

#: The specs, in the order of the site.
FUNCTIONS = (GRAD_FACTOR, GRAD_MULTIPLY, SHAKE_SHAKE)

__all__ = [
    "FUNCTIONS",
    "GRAD_FACTOR",
    "GRAD_MULTIPLY",
    "SHAKE_SHAKE",
    "GradFactor",
    "GradMultiply",
    "ShakeShake",
    "grad_factor",
    "grad_multiply",
    "mix_branches",
    "shake_shake",
]
