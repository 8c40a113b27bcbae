"""LinearAverageOp: the logits of a batch against a memory bank, whose rows move after the backward pass."""

from gradspec.functions._linear_average._function import LinearAverageOp
from gradspec.functions._linear_average._spec import LINEAR_AVERAGE_OP

__all__ = ["LINEAR_AVERAGE_OP", "LinearAverageOp"]
