"""Whether all ranks make the same call: asked in one small collective, before any that could wait for ever."""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

import torch

from gradspec.functions._sharded._ranks import Ranks


class Facts(NamedTuple):
    """Facts about a call that the ranks exchange, as integers."""

    #: The rows of the batch of a rank.
    batch: int = 0
    #: The rows of its shard.
    shard: int = 0
    #: Whether it asks for a gradient by its own rows.
    of_rows: int = 0
    #: From here on all ranks must say the same. The features of a row.
    features: int = 0
    #: The fingerprint of the dtype.
    dtype: int = 0
    #: Whether there is a bias.
    bias: int = 0
    #: Whether there is a margin.
    margin: int = 0
    #: Whether a gradient is asked for by the weight or the bias.
    of_weight: int = 0
    #: The fingerprint of the other options.
    options: int = 0


#: Where in `Facts` the ranks must agree, and what to call it.
MUST_AGREE = {
    "features": "the number of features",
    "dtype": "the dtype",
    "bias": "whether there is a bias",
    "margin": "whether there is a margin",
    "of_weight": "whether the weight or the bias requires grad",
    "options": "an option",
}


def fingerprint(*values: object) -> int:
    """Return a number for values that are only compared for equality."""
    return crc32(repr(values).encode())


def agreed(call: str, ranks: Ranks, facts: Facts, fault: Exception | None) -> list[Facts]:
    """Return the facts of each rank; raise on every rank if one of them makes a wrong call.

    Args:
        call: the function that was called, for the messages.
        ranks: all of them make the call.
        facts: those of this rank.
        fault: what is wrong with the call of this rank.

    Raises:
        RuntimeError: another rank has a fault, or the facts do not agree.
    """
    mine = torch.tensor([[int(fault is not None), *facts]], dtype=torch.int64, device=ranks.device_type)
    table = ranks.all_gather(mine).tolist()
    if fault is not None:
        raise fault
    if refused := [rank for rank, row in enumerate(table) if row[0]]:
        raise RuntimeError(f"{call}: rank {refused[0]} of the mesh refuses its call, and its error says why")
    found = [Facts(*row[1:]) for row in table]
    for name, words in MUST_AGREE.items():
        for rank, other in enumerate(found):
            if getattr(other, name) != getattr(found[0], name):
                raise RuntimeError(f"{call}: {words} differs between rank 0 and rank {rank} of the mesh")
    return found
