"""Laws of text Functions.

A line for each, in the order in which they run: a law comes after the laws that it requires.
"""

from gradspec.laws.text._forward import FORWARD
from gradspec.laws.text._arity import ARITY
from gradspec.laws.text._none_for_data import NONE_FOR_DATA
from gradspec.laws.text._feedback import FEEDBACK
from gradspec.laws.text._accumulation import ACCUMULATION
from gradspec.laws.text._order import ORDER
from gradspec.laws.text._exactly_once import EXACTLY_ONCE
from gradspec.laws.text._all_or_nothing import ALL_OR_NOTHING
from gradspec.laws.text._no_cycle import NO_CYCLE

from gradspec.law import Law

#: What is imported above, in that order.
LAWS = tuple(value for value in globals().values() if isinstance(value, Law))

__all__ = ["LAWS"]
