"""The fields that specs of every kind share, as frozen data.

`gradspec.spec` has the same objects; both paths stay.
"""

from gradspec._renamed import old_names
from gradspec.spec import Argument, Case, Difference, Invocation, Make, Misuse, Reference, Spec, Waiver, check_callable

__all__ = [
    "Make",
    "Case",
    "Misuse",
    "Argument",
    "Difference",
    "Reference",
    "Waiver",
    "Invocation",
    "Spec",
    "check_callable",
]

__getattr__ = old_names(__name__, Attempt="Invocation")
