"""The memory bank of instance discrimination, and the classifier that reads it."""

from gradspec.nn._memory_bank._module import LinearAverage
from gradspec.nn._memory_bank._nearest_neighbours import nearest_neighbour_scores
from gradspec.nn._memory_bank._shard import shard
from gradspec.nn._memory_bank._spec import LINEAR_AVERAGE

__all__ = ["LINEAR_AVERAGE", "LinearAverage", "nearest_neighbour_scores", "shard"]
