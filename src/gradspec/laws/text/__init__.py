"""Laws of text Functions."""

from gradspec.laws.text._accumulation import ACCUMULATION
from gradspec.laws.text._all_or_nothing import ALL_OR_NOTHING
from gradspec.laws.text._arity import ARITY
from gradspec.laws.text._exactly_once import EXACTLY_ONCE
from gradspec.laws.text._feedback import FEEDBACK
from gradspec.laws.text._forward import FORWARD
from gradspec.laws.text._no_cycle import NO_CYCLE
from gradspec.laws.text._none_for_data import NONE_FOR_DATA
from gradspec.laws.text._order import ORDER

#: In the order in which they run: a law comes after the laws that it requires.
LAWS = (FORWARD, ARITY, NONE_FOR_DATA, FEEDBACK, ACCUMULATION, ORDER, EXACTLY_ONCE, ALL_OR_NOTHING, NO_CYCLE)

__all__ = [
    "ACCUMULATION",
    "ALL_OR_NOTHING",
    "ARITY",
    "EXACTLY_ONCE",
    "FEEDBACK",
    "FORWARD",
    "LAWS",
    "NONE_FOR_DATA",
    "NO_CYCLE",
    "ORDER",
]
