"""Shared parts of the sharded functions: the ranks of a mesh, their agreement, and the rows of all of them."""

from gradspec.functions._sharded._agreement import Facts, agreed, fingerprint
from gradspec.functions._sharded._batch import Batch, gathered
from gradspec.functions._sharded._ranks import Ranks, is_dtensor, local_shard, ranks_of

__all__ = ["Batch", "Facts", "Ranks", "agreed", "fingerprint", "gathered", "is_dtensor", "local_shard", "ranks_of"]
