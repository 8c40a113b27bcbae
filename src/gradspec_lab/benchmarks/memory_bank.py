"""Loss and gradient against a memory bank: ours, the published operation with cross-entropy, and two matrix products.

`python -m gradspec_lab.benchmarks.memory_bank --site FOLDER --out docs/records/benchmarks/memory_bank.json`, where the
folder holds brails 4.3.1: `pip install --no-deps --target FOLDER brails==4.3.1`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from gradspec.nn import LinearAverage
from gradspec.report import write_experiment
from gradspec_lab.benchmarks._interleaved import interleaved, machine, summary
from gradspec_lab.peers.load import cut  # a script has its own folder on the path alone

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

FILE = "brails/processors/foundation_classifier/lib/LinearAverage.py"
BATCH, FEATURES, TEMPERATURE, MOMENTUM = 256, 128, 0.07, 0.5
#: Rows of the bank, and how often each is timed; the last is the training set of ImageNet.
ROUNDS = {10_000: 31, 100_000: 15, 1_281_167: 5}
ENOUGH = 5


def inputs(size: int) -> tuple[torch.Tensor, torch.Tensor, LinearAverage]:
    """Return embeddings of length 1, their instances, and a bank."""
    torch.manual_seed(0)
    bank = LinearAverage(FEATURES, size, TEMPERATURE, MOMENTUM)
    x = torch.nn.functional.normalize(torch.randn(BATCH, FEATURES))
    return x, torch.randint(size, (BATCH,)), bank


def steps(size: int, site: Path) -> dict[str, Callable[[], Any]]:
    """Return the ways to measure; all but the products return loss and gradient."""
    x, y, bank = inputs(size)
    x.requires_grad_()
    memory, params = bank.memory, bank.params
    published = cut(site / FILE, "LinearAverageOp")

    def ours() -> tuple[torch.Tensor, torch.Tensor]:
        loss = bank.loss(x, y)
        return loss.detach(), torch.autograd.grad(loss, x)[0]

    def theirs() -> tuple[torch.Tensor, torch.Tensor]:
        loss = torch.nn.functional.cross_entropy(published.apply(x, y, memory, params), y)
        return loss.detach(), torch.autograd.grad(loss, x)[0]

    def products() -> torch.Tensor:
        return x.detach() @ memory.T @ memory

    return {"ours": ours, "published": theirs, "two products": products}


def extra_bytes(way: str, size: int, site: Path) -> int:
    """Return by how much one step raises the peak of the memory of its process, in a process of its own."""
    command = [sys.executable, __file__, "--site", str(site), "--peak", way, "--size", str(size)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def print_peak(way: str, size: int, site: Path) -> None:
    """Print by how many bytes one step raises the peak: resident memory, counted by the kernel."""
    step = steps(size, site)[way]
    torch.ones(64, 64) @ torch.ones(64, 64)  # starts the threads; what the first step loads and keeps is counted
    # From here on the peak is that of this step: writing 5 makes Linux forget the peak so far.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = resident("VmRSS")
    step()
    print(resident("VmHWM") - before)


def resident(field: str) -> int:
    """Return the memory of this process in bytes: VmRSS is what it has now, VmHWM the most that it had."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


def agreement(size: int, site: Path) -> dict[str, float]:
    """Return how far the two losses and gradients are apart, relative to the largest element."""
    # Each with a bank of its own: the published backward pass moves it.
    pairs = [steps(size, site)[way]() for way in ("ours", "published")]
    apart = [float((a - b).abs().max() / b.abs().max()) for a, b in zip(*pairs, strict=True)]
    return {"loss": apart[0], "gradient": apart[1]}


def measure(size: int, rounds: int, site: Path) -> dict[str, Any]:
    """Return medians, both ratios, peaks and agreement for a bank of `size` rows."""
    seconds = interleaved(steps(size, site), rounds=rounds, warm_up=1)
    against = summary(seconds, ours="ours", baseline="published")
    return {
        "rows": size,
        "rounds": rounds,
        "median_ms": against["median_ms"],
        "to_published": against["ratio"],
        "to_two_products": summary(seconds, ours="ours", baseline="two products")["ratio"],
        "extra_bytes": {way: extra_bytes(way, size, site) for way in ("ours", "published")},
        "apart": agreement(size, site),
    }


def figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the site draws of the measurements: memory and time by the rows of the bank."""

    def figure(title: str, label: str, ways: Sequence[str], value: Callable[[Mapping[str, Any], str], float]) -> Any:
        x = {"label": "rows of the bank", "scale": "log", "values": [row["rows"] for row in rows]}
        lines = [{"label": way, "runs": [[round(value(row, way), 2) for row in rows]]} for way in ways]
        return {"title": title, "x": x, "y": {"label": label, "scale": "log", "format": ",.1f"}, "lines": lines}

    ways = ("ours", "published")
    return {
        "memory": figure("Memory beside the arguments", "MiB", ways, lambda row, way: row["extra_bytes"][way] / 2**20),
        "time": figure(
            "Time of loss and gradient", "ms", (*ways, "two products"), lambda row, way: row["median_ms"][way]
        ),
    }


def main() -> None:
    """Measure, print, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site", type=Path, default=os.environ.get("GRADSPEC_PUBLISHED"), help="holds brails 4.3.1")
    parser.add_argument("--out", type=Path, help="where to write the record; only printed without it")
    parser.add_argument("--rounds", type=int, help="how often each is timed; more for a small bank unless told")
    parser.add_argument("--size", type=int, action="append", help="rows of the bank; three sizes unless told")
    parser.add_argument("--peak", help="print the extra peak memory of this way alone, in bytes")
    options = parser.parse_args()
    if options.site is None:
        parser.error("give the folder of the published package with --site")
    if options.peak:
        print_peak(options.peak, options.size[0], options.site)
        return
    load = round(os.getloadavg()[0], 2)
    rows = [
        measure(size, options.rounds or ROUNDS.get(size, ENOUGH), options.site) for size in options.size or list(ROUNDS)
    ]
    record = {
        "name": "memory_bank",
        "what": "loss and gradient of LinearAverage.loss against the published LinearAverageOp, cut from the "
        "wheel of brails 4.3.1, with cross_entropy, and against x @ memory.T @ memory, interleaved; nothing of the "
        "published operation is substituted: it names no device",
        "batch": BATCH,
        "features": FEATURES,
        "dtype": "float32",
        "provenance": {**machine(), "load_before": load},
        "measurements": rows,
        "figures": figures(rows),
    }
    for row in rows:
        times = ", ".join(f"{name} {ms:.1f} ms" for name, ms in row["median_ms"].items())
        peaks = ", ".join(f"{name} {peak / 2**20:.1f} MiB" for name, peak in row["extra_bytes"].items())
        ratios = f"{1 / row['to_published']['median']:.2f} x faster, {row['to_two_products']['median']:.3f} of products"
        print(f"{row['rows']} rows: {times}; {ratios}; {peaks}; apart {row['apart']}")
    if options.out:
        write_experiment(record, options.out)
        print(f"written to {options.out}")


if __name__ == "__main__":
    main()
