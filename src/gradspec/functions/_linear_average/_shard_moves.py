"""How the rows of a sharded memory bank move: by the rule of one process on the batches of all ranks in their order."""

from __future__ import annotations

from torch import Tensor

from gradspec.functions._linear_average._bank import move_rows
from gradspec.functions._linear_average._checks import check_constants, check_forms, check_rows
from gradspec.functions._sharded import Batch, Facts, agreed, fingerprint, gathered, local_shard, ranks_of
from gradspec.functions._torch import outside_graphs


@outside_graphs
def move_shard_rows(call: str, x: Tensor, y: Tensor, memory: Tensor, params: Tensor) -> None:
    """Move the rows `y` of all ranks, each on the rank that holds it.

    Every rank gets the embeddings of all, and takes those of its rows. Of embeddings that share a row the last one
    wins, the ranks being one batch in their order.

    Args:
        call: how the call is written, for the messages.
        x: the embeddings of this rank, shape (B, D).
        y: the row of each, shape (B,), among those of all ranks.
        memory: a DTensor of shape (N, D), placed as `Shard(0)`.
        params: `[T, momentum]`.

    Raises:
        TypeError: as `check_call`.
        ValueError: as `check_call`.
        IndexError: as `check_call`, on every rank.
        RuntimeError: another rank refuses its call, or makes a different one.
    """
    ranks, shard = ranks_of(call, "memory", memory), local_shard(memory)
    facts, fault = Facts(), None
    try:
        check_forms(call, x, y, shard, params)
        check_constants(call, memory, params)
        facts = Facts(
            batch=x.shape[0],
            shard=shard.shape[0],
            features=x.shape[1],
            dtype=fingerprint(shard.dtype),
            options=fingerprint(params.tolist()),
        )
    except (TypeError, ValueError) as error:
        fault = error
    found = agreed(call, ranks, facts, fault)
    batch = Batch(ranks=ranks, sizes=tuple(one.batch for one in found))
    if not batch.height:
        return
    real = batch.real(shard.device)
    rows, place = gathered(batch, x.detach().to(shard.dtype))[real], gathered(batch, y)[real]
    check_rows(call, place, memory)
    place = place - sum(one.shard for one in found[: ranks.rank])
    here = (place >= 0) & (place < shard.shape[0])
    move_rows(rows[here], place[here], shard, params)
