"""What explains a violation: experiments on the function itself; what none of them shows is not said."""

from gradspec.explain._follows import Explained, beside_others
from gradspec.explain._reasons import with_reason

__all__ = ["Explained", "beside_others", "with_reason"]
