"""What a rank holds and sends if a memory bank is sharded: the formulas, and a table of them."""

from __future__ import annotations

import math

#: The numbers that a step adds to one small collective of the call and one of the update: whether the calls agree.
AGREEMENT = 10
#: Bytes of an int64.
INT = 8
FEATURES = 128
#: Rows of the batch of a rank.
BATCH = 256
ROWS = (10**6, 10**8, 10**9)
RANKS = (8, 64, 512)


def bank_bytes(rows: int, ranks: int, features: int = FEATURES, number: int = 4) -> int:
    """Return the bytes of the rows of the first rank, which has the most: ceil(N / R) x D x number."""
    return math.ceil(rows / ranks) * features * number


def batch_bytes(batch: int, ranks: int, features: int = FEATURES, number: int = 4) -> int:
    """Return the bytes of the embeddings of all ranks, which every rank gets: R x B x D x number."""
    return ranks * batch * features * number


def sent_bytes(batch: int, ranks: int, features: int = FEATURES, number: int = 4) -> int:
    """Return the bytes that a rank sends in a step, the forward pass with its gradient and the update.

    With rings: the embeddings are gathered twice and their gradients scattered once, (R - 1) x B x D each; of each row
    go its place, twice, and three numbers that are added up or compared, which count double.
    """
    others = ranks - 1
    rows = 3 * others * batch * features * number
    places = 2 * others * batch * INT
    merged = 3 * 2 * others * batch * number
    return rows + places + merged + 2 * others * AGREEMENT * INT


def table() -> str:
    """Return the table of the page: a line for each size of the bank and number of ranks."""
    lines = ["| rows | ranks | bank, a rank | batch of all, a rank | sent, a rank and step |", "|" + "---|" * 5]
    for rows in ROWS:
        for ranks in RANKS:
            numbers = (bank_bytes(rows, ranks), batch_bytes(BATCH, ranks), sent_bytes(BATCH, ranks))
            lines.append(f"| {rows:.0e} | {ranks} | {' | '.join(_readable(number) for number in numbers)} |")
    return "\n".join(lines).replace("e+0", "e")


def _readable(number: int) -> str:
    for unit in ("kB", "MB", "GB"):
        number_in_unit = number / 1000 ** (("kB", "MB", "GB").index(unit) + 1)
        if number_in_unit < 1000:
            return f"{number_in_unit:.3g} {unit}"
    return f"{number_in_unit:.4g} GB"


if __name__ == "__main__":
    print(table())
