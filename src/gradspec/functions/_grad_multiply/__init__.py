"""GradMultiply: the identity whose gradient is multiplied by a scale."""

from gradspec.functions._grad_multiply._function import GradMultiply, grad_multiply
from gradspec.functions._grad_multiply._spec import GRAD_MULTIPLY

__all__ = ["GRAD_MULTIPLY", "GradMultiply", "grad_multiply"]
