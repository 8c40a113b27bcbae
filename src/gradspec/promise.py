"""What a spec of any kind says, under the path that it had before `gradspec.spec` held every spec."""

import warnings
from typing import Any

from gradspec.spec import Argument, Case, Difference, Invocation, Make, Misuse, Reference, Spec, Waiver, check_callable

# In the order of the page that documents them.
__all__ = [
    "Argument",
    "Case",
    "Difference",
    "Invocation",
    "Make",
    "Misuse",
    "Reference",
    "Spec",
    "Waiver",
    "check_callable",
]


def __getattr__(name: str) -> Any:
    if name == "Attempt":
        warnings.warn("gradspec.promise.Attempt is called Invocation now", DeprecationWarning, stacklevel=2)
        return Invocation
    raise AttributeError(f"module 'gradspec.promise' has no attribute {name!r}")
