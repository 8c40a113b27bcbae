"""What a spec of any kind says, as frozen data; the kinds add what only they have. `gradspec.spec` has these too."""

import warnings
from typing import Any

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


def __getattr__(name: str) -> Any:
    if name == "Attempt":
        warnings.warn("gradspec.promise.Attempt is called Invocation now", DeprecationWarning, stacklevel=2)
        return Invocation
    raise AttributeError(f"module 'gradspec.promise' has no attribute {name!r}")
