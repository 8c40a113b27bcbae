"""The laws, in the order in which they run."""

from gradspec.laws.tensor import LAWS
from gradspec.laws.tensor._reference import SpecFaultError

__all__ = ["LAWS", "SpecFaultError"]
