"""What explains a violation: experiments on the function itself; what none of them shows is not said."""

from gradspec.explain._follows import Explained, beside_others
from gradspec.explain._linearity import SMALL, ignores
from gradspec.explain._reasons import with_reason

__all__ = ["SMALL", "Explained", "beside_others", "ignores", "with_reason"]
