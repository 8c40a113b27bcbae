"""GradFactor: the identity whose gradient is multiplied by a factor."""

from gradspec.functions._grad_factor._function import GradFactor, grad_factor
from gradspec.functions._grad_factor._spec import GRAD_FACTOR

__all__ = ["GRAD_FACTOR", "GradFactor", "grad_factor"]
