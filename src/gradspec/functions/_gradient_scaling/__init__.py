"""GradFactor and GradMultiply: the identity whose gradient is scaled."""

from gradspec.functions._gradient_scaling._grad_factor import GradFactor, grad_factor
from gradspec.functions._gradient_scaling._grad_multiply import GradMultiply, grad_multiply
from gradspec.functions._gradient_scaling._spec import GRAD_FACTOR, GRAD_MULTIPLY

__all__ = ["GRAD_FACTOR", "GRAD_MULTIPLY", "GradFactor", "GradMultiply", "grad_factor", "grad_multiply"]
