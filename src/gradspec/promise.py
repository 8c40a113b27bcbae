"""What a spec of any kind says, under the path that it had before `gradspec.spec` held every spec."""

from gradspec.spec import Argument, Attempt, Case, Difference, Make, Misuse, Reference, Spec, Waiver, check_callable

# In the order of the page that documents them.
__all__ = [
    "Argument",
    "Attempt",
    "Case",
    "Difference",
    "Make",
    "Misuse",
    "Reference",
    "Spec",
    "Waiver",
    "check_callable",
]
