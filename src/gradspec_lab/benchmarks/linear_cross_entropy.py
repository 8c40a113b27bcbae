"""The cross-entropy of a linear layer, forward and backward: ours, each form of torch's own, and compiled plain logits.

`python -m gradspec_lab.benchmarks.linear_cross_entropy --out docs/records/benchmarks/linear_cross_entropy.json`; with
two threads, `OMP_NUM_THREADS=2`. With `--site FOLDER`, also the torch path of cut-cross-entropy:

`python -m pip install --no-deps --target FOLDER cut-cross-entropy==25.1.1 triton==3.9.0`

That path, `impl="torch_compile"`, runs on a CPU. The package imports Triton at once, which installs there too; its own
kernels do not run: "0 active drivers".
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import cross_entropy, normalize
from torch.nn.functional import linear_cross_entropy as torch_own

from gradspec.functions import linear_cross_entropy
from gradspec.report import write_experiment
from gradspec_lab.benchmarks._interleaved import interleaved, machine, summary
from gradspec_lab.benchmarks._peak import peak_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

TEMPERATURE = 0.07
#: Classes, and how often each is timed; the last is the training set of ImageNet.
ROUNDS = {10_000: 9, 100_000: 5, 1_281_167: 3}
ENOUGH = 3
#: Of how many classes the batch and the features are varied, and how.
VARIED, BATCHES, FEATURES = 100_000, (64, 1024), (32, 512)
#: Above so many classes the options of torch that it chooses itself take ten times as long as the others.
SLOW = 10_000
#: Rows of the batch that torch takes at a time; all of them are one chunk.
CHUNKS = (64, 256)
OURS, PLAIN, COMPILED, CHOSEN = "ours", "torch, plain", "torch.compile, plain logits", "torch, its own options"
PACKAGE, CUT = "cut_cross_entropy", "cut-cross-entropy, torch_compile"
ALONE, BOTH = "x alone", "x and weight"


@dataclass(frozen=True)
class Size:
    """How large the rows and the weight are."""

    classes: int
    batch: int = 256
    features: int = 128


def inputs(size: Size) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return rows and a weight, each row of length 1, and classes."""
    torch.manual_seed(0)
    x, weight = (normalize(torch.randn(rows, size.features)) for rows in (size.batch, size.classes))
    return x, weight, torch.randint(size.classes, (size.batch,))


@cache
def cut_cross_entropy(site: Path) -> Callable[..., torch.Tensor]:
    """Return the function of the published package in a folder, as it runs on a CPU."""
    sys.path.append(str(site))
    # By a name that is no literal: the key of the record would depend on whether the package is at hand.
    return partial(import_module(PACKAGE).linear_cross_entropy, impl="torch_compile")


def losses(classes: int, site: Path | None = None) -> dict[str, Callable[..., torch.Tensor]]:
    """Return the ways to compute the loss of rows, weight and classes."""

    def ours(x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return linear_cross_entropy(x, weight, target, temperature=TEMPERATURE)

    def theirs(x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor, options: Any = None) -> torch.Tensor:
        return torch_own(x / TEMPERATURE, weight, target, options=options)

    @torch.compile
    def compiled(x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return cross_entropy(x @ weight.T / TEMPERATURE, target)

    chosen = torch.nn.LinearCrossEntropyOptions
    ways = {OURS: ours, PLAIN: theirs, COMPILED: compiled}
    if site is not None:
        published = cut_cross_entropy(site)
        ways[CUT] = lambda x, weight, target: published(x / TEMPERATURE, weight, target)
    ways |= {f"torch, {rows} rows at a time": partial(theirs, options=chosen(batch_chunk_size=rows)) for rows in CHUNKS}
    return ways | ({CHOSEN: partial(theirs, options=chosen())} if classes <= SLOW else {})


def steps(size: Size, by: str, site: Path | None = None) -> dict[str, Callable[[], tuple[torch.Tensor, ...]]]:
    """Return the ways to compute the loss and its gradients, by `x` alone or by `x` and the weight."""
    x, weight, target = inputs(size)
    wanted = (x, weight) if by == BOTH else (x,)
    for tensor in wanted:
        tensor.requires_grad_()

    def step(loss: Callable[..., torch.Tensor]) -> tuple[torch.Tensor, ...]:
        value = loss(x, weight, target)
        return value.detach(), *torch.autograd.grad(value, wanted)

    return {name: partial(step, loss) for name, loss in losses(size.classes, site).items()}


def apart(mine: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor]) -> float:
    """Return how far losses and gradients are apart, relative to the largest element of each."""
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(mine, theirs, strict=True))


def measure(size: Size, by: str, rounds: int, site: Path | None = None) -> dict[str, Any]:
    """Return medians, ratios to torch's best and to the compiled logits, memory and agreement."""
    ways = steps(size, by, site)
    results = ways[OURS]()
    beside = sum(tensor.numel() * tensor.element_size() for tensor in results)
    row: dict[str, Any] = {**asdict(size), "by": by, "rounds": rounds, "apart": apart(results, ways[PLAIN]())}
    del results
    seconds = interleaved(ways, rounds=rounds, warm_up=1)
    medians = summary(seconds, ours=OURS, baseline=PLAIN)["median_ms"]
    best = min((name for name in ways if name.startswith("torch, ")), key=medians.__getitem__)
    row |= {
        "median_ms": medians,
        "to_torch": summary(seconds, ours=OURS, baseline=best)["ratio"],
        "to_compiled": summary(seconds, ours=OURS, baseline=COMPILED)["ratio"],
        "extra_bytes": {name: peak_bytes(ways[name]) - beside for name in (OURS, PLAIN, best)},
    }
    return row


def figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the site draws: time by the number of classes, for each gradient, memory, and the other sizes."""
    plain = Size(VARIED)

    def figure(title: str, label: str, by: str, values: Callable[[Mapping[str, Any]], Mapping[str, float]]) -> Any:
        of = [
            row for row in rows if row["by"] == by and (row["batch"], row["features"]) == (plain.batch, plain.features)
        ]
        ways = [way for way in values(of[0]) if all(way in values(row) for row in of)]
        return {
            "title": title,
            "x": {"label": "classes", "scale": "log", "values": [row["classes"] for row in of]},
            "y": {"label": label, "scale": "log", "format": ",.1f"},
            "lines": [{"label": way, "runs": [[round(values(row)[way], 2) for row in of]]} for way in ways],
        }

    def ratios(title: str, label: str, of: str, other: str) -> Any:
        at = [row for row in rows if row["classes"] == VARIED and row[other] == getattr(plain, other)]
        at.sort(key=lambda row: row[of])
        lines = {by: [round(row["to_torch"]["median"], 3) for row in at if row["by"] == by] for by in (ALONE, BOTH)}
        return {
            "title": title,
            "x": {"label": label, "scale": "log", "values": [row[of] for row in at if row["by"] == ALONE]},
            "y": {"label": "of the time of torch's fastest form", "format": ".2f"},
            "lines": [{"label": by, "runs": [values]} for by, values in lines.items()],
        }

    return {
        "batch": ratios("Larger batches", "rows of the batch", "batch", "features"),
        "features": ratios("More features", "features", "features", "batch"),
        "alone": figure("Loss and gradient of x", "ms", ALONE, lambda row: row["median_ms"]),
        "both": figure("Loss and gradients of x and weight", "ms", BOTH, lambda row: row["median_ms"]),
        "memory": figure(
            "Memory beside the gradients",
            "MiB",
            BOTH,
            lambda row: {way: row["extra_bytes"][way] / 2**20 for way in (OURS, PLAIN)},
        ),
    }


def main() -> None:
    """Measure, print, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    at_hand = os.environ.get("GRADSPEC_CUT_CROSS_ENTROPY")
    parser.add_argument("--site", type=Path, default=at_hand, help="holds cut-cross-entropy 25.1.1; optional")
    parser.add_argument("--out", type=Path, help="where to write the record; only printed without it")
    parser.add_argument("--rounds", type=int, help="how often each is timed; more for few classes unless told")
    parser.add_argument("--size", type=int, action="append", help="number of classes alone; all sizes unless told")
    options = parser.parse_args()
    load, rows = round(os.getloadavg()[0], 2), []
    sizes = [Size(classes) for classes in options.size or ROUNDS]
    if not options.size:
        sizes += [Size(VARIED, batch=rows) for rows in BATCHES] + [Size(VARIED, features=count) for count in FEATURES]
    for size in sizes:
        for by in (ALONE, BOTH):
            torch.compiler.reset()
            rows.append(row := measure(size, by, options.rounds or ROUNDS.get(size.classes, ENOUGH), options.site))
            times = ", ".join(f"{name} {ms:.1f} ms" for name, ms in row["median_ms"].items())
            peaks = ", ".join(f"{name} {peak / 2**20:.1f} MiB" for name, peak in row["extra_bytes"].items())
            best, compiled = (row[against]["median"] for against in ("to_torch", "to_compiled"))
            of = f"{size.batch} x {size.features}, {size.classes} classes by {by}"
            print(
                f"{of}: {times}; {best:.3f} of {row['to_torch']['to']}, {compiled:.3f} of compiled; "
                f"{peaks}; apart {row['apart']:.1e}",
                flush=True,
            )
    record = {
        "name": "linear_cross_entropy",
        "what": "loss and gradients of linear_cross_entropy against each form of torch.nn.functional."
        "linear_cross_entropy and torch.compile of plain logits, interleaved; to_torch is to the fastest of torch's",
        "dtype": "float32",
        "provenance": {**machine(), "load_before": load},
        "measurements": rows,
        "figures": figures(rows),
    }
    if options.out:
        write_experiment(record, options.out)
        print(f"written to {options.out}")


if __name__ == "__main__":
    main()
