"""The cross-entropy of a linear layer, without its logits."""

from gradspec.functions._linear_cross_entropy._function import LinearCrossEntropy
from gradspec.functions._linear_cross_entropy._log_sum_exp import merge_by_log_sum_exp
from gradspec.functions._linear_cross_entropy._loss import linear_cross_entropy
from gradspec.functions._linear_cross_entropy._spec import LINEAR_CROSS_ENTROPY

__all__ = ["LINEAR_CROSS_ENTROPY", "LinearCrossEntropy", "linear_cross_entropy", "merge_by_log_sum_exp"]
