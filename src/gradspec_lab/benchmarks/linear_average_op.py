"""Both passes of `LinearAverageOp` against the published one, and against their two matrix products, interleaved.

`python -m gradspec_lab.benchmarks.linear_average_op --site FOLDER --out
docs/records/benchmarks/linear_average_op.json`, where the folder holds brails 4.3.1: `pip install --no-deps --target
FOLDER brails==4.3.1`.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from gradspec.functions import LinearAverageOp
from gradspec.report import write_experiment
from gradspec_lab.benchmarks._drawn import figure, ratio
from gradspec_lab.benchmarks._interleaved import interleaved, machine, summary
from gradspec_lab.benchmarks._peak import peak_bytes
from gradspec_lab.peers.load import cut  # a script has its own folder on the path alone

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

FILE = "brails/processors/foundation_classifier/lib/LinearAverage.py"
BATCH, FEATURES, TEMPERATURE, MOMENTUM = 256, 128, 0.07, 0.5
#: Rows of the bank, and how often each is timed.
ROUNDS = {1_000: 201, 10_000: 51, 100_000: 15}
ENOUGH = 5
OURS, PUBLISHED, PRODUCTS = "LinearAverageOp", "published", "two products"


def ways(size: int, site: Path) -> dict[str, Callable[[], object]]:
    """Return both passes of either class, each with a bank of its own that moves, and the products alone."""
    torch.manual_seed(0)
    memory = torch.nn.functional.normalize(torch.randn(size, FEATURES))
    x = torch.nn.functional.normalize(torch.randn(BATCH, FEATURES)).requires_grad_()
    y = torch.randperm(size)[:BATCH]
    params, cotangent = torch.tensor([TEMPERATURE, MOMENTUM]), torch.randn(BATCH, size)
    classes: dict[str, Any] = {OURS: LinearAverageOp, PUBLISHED: cut(site / FILE, "LinearAverageOp")}

    def both_passes(cls: Any, bank: torch.Tensor) -> object:
        return torch.autograd.grad(cls.apply(x, y, bank, params), x, cotangent)

    def products() -> object:
        return x.detach() @ memory.T, cotangent @ memory

    banks = {name: memory.clone() for name in classes}
    each = {name: (lambda cls=cls, bank=banks[name]: both_passes(cls, bank)) for name, cls in classes.items()}
    return {**each, PRODUCTS: products}


def measure(size: int, rounds: int, site: Path) -> dict[str, Any]:
    """Return medians, ratios and memory for a bank of `size` rows."""
    called = ways(size, site)
    seconds = interleaved(called, rounds=rounds)
    compared = [
        summary(seconds, ours=of, baseline=to)
        for of, to in ((OURS, PUBLISHED), (OURS, PRODUCTS), (PUBLISHED, PRODUCTS))
    ]
    return {
        "rows": size,
        "rounds": rounds,
        "median_ms": compared[0]["median_ms"],
        "ratios": [each["ratio"] for each in compared],
        "peak_bytes": {way: peak_bytes(call) for way, call in called.items()},
    }


def figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the site draws of the measurements: time and memory over the rows of the bank."""
    sizes = [row["rows"] for row in rows]
    slower = {"label": "times as long as two matrix products", "format": ".2f"}
    held = {"label": "MiB", "scale": "log", "format": ",.1f"}
    times = {way: [ratio(row, way, PRODUCTS) for row in rows] for way in (OURS, PUBLISHED)}
    memory = {way: [row["peak_bytes"][way] / 2**20 for row in rows] for way in (OURS, PUBLISHED, PRODUCTS)}
    return {
        "time": figure("Time of both passes", "rows of the bank", sizes, slower, times),
        "memory": figure("Memory beside the arguments", "rows of the bank", sizes, held, memory),
    }


def main() -> None:
    """Measure, print, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site", type=Path, default=os.environ.get("GRADSPEC_PUBLISHED"), help="holds brails 4.3.1")
    parser.add_argument("--out", type=Path, help="where to write the record; only printed without it")
    parser.add_argument("--rounds", type=int, help="how often each is timed; more for a small bank unless told")
    parser.add_argument("--size", type=int, action="append", help="rows of the bank; three sizes unless told")
    options = parser.parse_args()
    if options.site is None:
        parser.error("give the folder of the published package with --site")
    rows = [
        measure(size, options.rounds or ROUNDS.get(size, ENOUGH), options.site) for size in options.size or list(ROUNDS)
    ]
    record = {
        "name": "linear_average_op",
        "what": "forward and backward of LinearAverageOp, which moves its bank, against the published one, cut from "
        "the wheel of brails 4.3.1, and against x @ memory.T and o_bar @ memory, interleaved; nothing is substituted",
        "batch": BATCH,
        "features": FEATURES,
        "dtype": "float32",
        "provenance": machine(),
        "measurements": rows,
        "figures": figures(rows),
    }
    for row in rows:
        times = ", ".join(f"{name} {ms:.2f} ms" for name, ms in row["median_ms"].items())
        ratios = ", ".join(f"{each['of']} / {each['to']} {each['median']:.3f}" for each in row["ratios"])
        print(f"{row['rows']} rows: {times}; {ratios}; at the most {row['peak_bytes']} bytes")
    if options.out:
        write_experiment(record, options.out)
        print(f"written to {options.out}")


if __name__ == "__main__":
    main()
