"""What explains a violation: experiments on the function itself; what none of them shows is not said."""

from gradspec.explain._follows import Explained, beside_others, found_by

__all__ = ["Explained", "beside_others", "found_by"]
