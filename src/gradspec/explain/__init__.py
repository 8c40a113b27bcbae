"""What explains a violation: experiments on the function itself; what none of them shows is not said."""

from gradspec.explain._by_differences import by_differences
from gradspec.explain._follows import Explained, beside_others
from gradspec.explain._instead import instead_of
from gradspec.explain._linearity import SMALL, ignores
from gradspec.explain._noise import beside_noise, is_of_noise
from gradspec.explain._reasons import with_reason

__all__ = [
    "SMALL",
    "Explained",
    "beside_noise",
    "beside_others",
    "by_differences",
    "ignores",
    "instead_of",
    "is_of_noise",
    "with_reason",
]
