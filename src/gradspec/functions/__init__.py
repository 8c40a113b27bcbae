"""The documented functions, under their published names, and their specs."""

from gradspec.functions._grad_factor import GRAD_FACTOR, GradFactor, grad_factor
from gradspec.functions._grad_multiply import GRAD_MULTIPLY, GradMultiply, grad_multiply

#: The specs, in the order of the site.
FUNCTIONS = (GRAD_FACTOR, GRAD_MULTIPLY)

__all__ = [
    "FUNCTIONS",
    "GRAD_FACTOR",
    "GRAD_MULTIPLY",
    "GradFactor",
    "GradMultiply",
    "grad_factor",
    "grad_multiply",
]
