"""Laws of modules."""

from gradspec.laws.module._batch_size import BATCH_SIZE

#: In the order in which they run: a law comes after the laws that it requires.
LAWS = (BATCH_SIZE,)

__all__ = ["BATCH_SIZE", "LAWS"]
