"""A step of a memory bank on one rank and on two: gloo, one thread a rank, interleaved.

`python -m gradspec_lab.benchmarks.sharded_bank --out docs/records/benchmarks/sharded_bank.json`
"""

from __future__ import annotations

import argparse
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.multiprocessing as processes

from gradspec.nn import LinearAverage
from gradspec.report import write_experiment
from gradspec_lab.benchmarks._drawn import figure, ratio
from gradspec_lab.benchmarks._interleaved import interleaved, machine, summary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from multiprocessing.connection import Connection

BATCH, FEATURES = 256, 128
#: Rows of the bank on each rank, and how often each is timed.
ROUNDS = {1_000: 101, 10_000: 51, 100_000: 15}
ENOUGH = 5
SAME, TWICE, TWO = "1 rank, its rows", "1 rank, twice the rows", "2 ranks, twice the rows"
WEAK, STRONG = "a second rank with as many rows of its own", "the same rows on two ranks"


def serve(rank: int, ranks: int, port: int, inbox: Connection) -> None:
    """Join the group; make a step for each number of rows that comes, with the part of the batch that is the rank's."""
    torch.set_num_threads(1)
    address = f"tcp://127.0.0.1:{port}"
    torch.distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=ranks)
    mesh = torch.distributed.init_device_mesh("cpu", (ranks,))
    banks: dict[int, LinearAverage] = {}
    while (rows := inbox.recv()) is not None:
        if rows not in banks:
            torch.manual_seed(0)  # one bank, on any number of ranks
            banks[rows] = LinearAverage(FEATURES, rows, mesh=mesh)
        inbox.send(step(banks[rows], *drawn(rows, rank, ranks)))
    torch.distributed.destroy_process_group()


def drawn(rows: int, rank: int, ranks: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a rank's part of the embeddings and their rows: the same batch on any number of ranks."""
    generator = torch.Generator().manual_seed(0)
    x = torch.nn.functional.normalize(torch.randn(BATCH, FEATURES, generator=generator))
    y = torch.randint(rows, (BATCH,), generator=generator)
    part = slice(rank * BATCH // ranks, (rank + 1) * BATCH // ranks)
    return x[part].requires_grad_(), y[part]


def step(bank: LinearAverage, x: torch.Tensor, y: torch.Tensor) -> float:
    """Make a step, and return the loss: forward, backward, and the rows moved."""
    loss = bank.loss(x, y)
    loss.backward()  # type: ignore[no-untyped-call]
    bank.update(x.detach(), y)
    return float(loss.detach())


class Ranks:
    """Processes of one group, which wait without computing until they are asked."""

    def __init__(self, ranks: int) -> None:
        with socket.socket() as asked:
            asked.bind(("127.0.0.1", 0))
            port = asked.getsockname()[1]
        context = processes.get_context("spawn")
        pipes = [context.Pipe() for _ in range(ranks)]
        self.inboxes = [ours for ours, _ in pipes]
        for rank, (_, theirs) in enumerate(pipes):
            context.Process(target=serve, args=(rank, ranks, port, theirs), daemon=True).start()

    def step(self, rows: int) -> float:
        """Have all ranks make a step, and return the mean of their losses: that of the batch."""
        for inbox in self.inboxes:
            inbox.send(rows)
        return sum(inbox.recv() for inbox in self.inboxes) / len(self.inboxes)

    def close(self) -> None:
        """End the processes."""
        for inbox in self.inboxes:
            inbox.send(None)


def measure(rows: int, rounds: int, one: Ranks, two: Ranks) -> dict[str, Any]:
    """Return medians and ratios, with `rows` rows on a rank, or twice as many on one."""
    both = {name: ranks.step(2 * rows) for name, ranks in ((TWICE, one), (TWO, two))}
    seconds = interleaved(
        {SAME: lambda: one.step(rows), TWICE: lambda: one.step(2 * rows), TWO: lambda: two.step(2 * rows)},
        rounds=rounds,
    )
    compared = [summary(seconds, ours=TWO, baseline=of) for of in (SAME, TWICE)]
    return {
        "rows": rows,
        "rounds": rounds,
        "median_ms": compared[0]["median_ms"],
        "ratios": [each["ratio"] for each in compared],
        "losses_apart": abs(both[TWICE] - both[TWO]) / abs(both[TWICE]),
    }


def figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the site draws of the measurements: what two ranks take of the time of one."""
    sizes = [row["rows"] for row in rows]
    axis = {"label": "times as long as one rank", "format": ".2f"}
    lines = {WEAK: [ratio(row, TWO, SAME) for row in rows], STRONG: [ratio(row, TWO, TWICE) for row in rows]}
    return {"time": figure("Time of a step on two ranks", "rows of the bank on each rank", sizes, axis, lines)}


def main() -> None:
    """Measure, print, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="where to write the record; only printed without it")
    parser.add_argument("--rounds", type=int, help="how often each is timed; more for few rows unless told")
    parser.add_argument("--size", type=int, action="append", help="rows on each rank; three sizes unless told")
    options = parser.parse_args()
    torch.set_num_threads(1)  # of each rank: what is noted is what they have
    load = round(os.getloadavg()[0], 2)
    one, two = Ranks(1), Ranks(2)
    rows = [measure(size, options.rounds or ROUNDS.get(size, ENOUGH), one, two) for size in options.size or ROUNDS]
    one.close()
    two.close()
    for row in rows:
        times = ", ".join(f"{name}: {ms:.2f} ms" for name, ms in row["median_ms"].items())
        more, same = (each["median"] for each in row["ratios"])
        print(f"{row['rows']} rows a rank: {times}; {WEAK}: {more:.2f} x, {STRONG}: {same:.2f} x")
    record = {
        "name": "sharded_bank",
        "what": "loss, backward pass and update of LinearAverage with its rows on one rank and on two, gloo, one "
        "thread a rank, on one machine, the same batch in all; interleaved",
        "batch": BATCH,
        "features": FEATURES,
        "dtype": "float32",
        "provenance": {**machine(), "load_before": load, "processors": len(os.sched_getaffinity(0))},
        "measurements": rows,
        "figures": figures(rows),
    }
    if options.out:
        write_experiment(record, options.out)
        print(f"written to {options.out}")


if __name__ == "__main__":
    main()
