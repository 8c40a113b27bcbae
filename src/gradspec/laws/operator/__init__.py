"""Laws of operators that `torch.library` registers, beside those of functions.

A line for each, in the order in which they run: a law comes after the laws that it requires.
"""

from gradspec.laws.operator._schema import SCHEMA
from gradspec.laws.operator._kernels import KERNELS
from gradspec.laws.operator._fake_kernel import FAKE_KERNEL
from gradspec.laws.operator._opcheck import OPCHECK
from gradspec.laws.operator._exported_operator import EXPORTED_OPERATOR

from gradspec.law import Law

#: What is imported above, in that order.
LAWS = tuple(value for value in globals().values() if isinstance(value, Law))

__all__ = ["LAWS"]
