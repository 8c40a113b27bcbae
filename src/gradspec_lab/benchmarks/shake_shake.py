"""`ShakeShake` and `ShakeResNet` against the published code of archai, cut from its wheel, interleaved.

`python -m gradspec_lab.benchmarks.shake_shake --site FOLDER --out docs/records/benchmarks/shake_shake.json`, where
FOLDER is what pip installed the published packages into (`nox -s lab -- peers` makes one).

The published code makes its noise with `torch.cuda.FloatTensor`; `torch.FloatTensor` stands in for it here.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import cross_entropy

from gradspec import nn as ours
from gradspec.functions import ShakeShake
from gradspec.report import write_experiment
from gradspec_lab.benchmarks._drawn import figure, ratio
from gradspec_lab.benchmarks._interleaved import interleaved, machine, summary
from gradspec_lab.benchmarks._peak import peak_bytes
from gradspec_lab.peers.load import alone

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType

    from torch import Tensor, nn

FOLDER = "archai.supergraph.models.shakeshake"
SHAPE = (128, 64, 32, 32)
#: So many sizes of the function: each has half the samples, half the height and half the width of the one before.
SIZES = 5
#: How many more rounds than the largest size the others get at the most: they take less time, and vary more.
MORE = 20
#: What makes glibc keep freed memory, as torch's allocator on a GPU does, instead of asking the system for new pages.
RECYCLED = {"MALLOC_MMAP_THRESHOLD_": str(1 << 32), "MALLOC_TRIM_THRESHOLD_": str(1 << 33)}


def function(published: ModuleType, *, shape: tuple[int, ...], rounds: int) -> dict[str, Any]:
    """Return forward and backward of both classes, and the least traffic: each tensor read or written once."""
    torch.manual_seed(0)
    x1, x2 = (torch.randn(shape, requires_grad=True) for _ in range(2))
    a, b, cotangent = x1.detach(), x2.detach(), torch.randn(shape)

    def both_passes(cls: Any) -> object:
        return torch.autograd.grad(cls.apply(x1, x2, True), (x1, x2), cotangent)

    def traffic() -> object:
        # Forward reads two and writes one. Backward reads one and writes two, in torch by two calls that each read it.
        return a + b, cotangent * 2, cotangent * 3

    ways: dict[str, Callable[[], object]] = {
        "ShakeShake": lambda: both_passes(ShakeShake),
        "published": lambda: both_passes(published.ShakeShake),
        "traffic": traffic,
    }
    seconds = interleaved(ways, rounds=rounds)
    pairs = (("ShakeShake", "published"), ("ShakeShake", "traffic"), ("published", "traffic"))
    compared = [summary(seconds, ours=of, baseline=to) for of, to in pairs]
    fresh = "MALLOC_TRIM_THRESHOLD_" not in os.environ
    return {
        "what": "forward and backward of ShakeShake",
        "shape": list(shape),
        "bytes": x1.nbytes,
        "dtype": "float32",
        "memory": "fresh from the system" if fresh else "recycled by the allocator",
        "rounds": rounds,
        "median_ms": compared[0]["median_ms"],
        "ratios": [each["ratio"] for each in compared],
        "peak_bytes": {way: peak_bytes(call) for way, call in ways.items()},
    }


def sizes(published: ModuleType, *, samples: int, rounds: int) -> list[dict[str, Any]]:
    """Return the measurements of the function, the largest first."""
    _, channels, *image = SHAPE
    return [
        function(
            published,
            shape=(max(1, samples // 2**i), channels, *(side // 2**i for side in image)),
            rounds=rounds * min(MORE, 8**i),
        )
        for i in range(SIZES)
    ]


def figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the site draws of the function: time and memory over the size of a branch."""
    kinds = {"fresh memory": "fresh from the system", "recycled memory": "recycled by the allocator"}
    by_kind = {kind: [row for row in rows if row["memory"] == memory] for kind, memory in kinds.items()}
    first = by_kind["fresh memory"]
    elements = [row["bytes"] // 4 for row in first]
    slower = {"label": "times as long as the least traffic", "scale": "log", "format": ".2f"}
    held = {"label": "bytes held at once, in sizes of a branch", "format": ".2f"}
    times = {
        f"{way}, {kind}": [ratio(row, way, "traffic") for row in found]
        for kind, found in by_kind.items()
        for way in ("ShakeShake", "published")
    }
    memory = {way: [row["peak_bytes"][way] / row["bytes"] for row in first] for way in ("ShakeShake", "published")}
    return {
        "time": figure("Time of both passes", "elements of a branch", elements, slower, times),
        "memory": figure("Memory beside the arguments", "elements of a branch", elements, held, memory),
    }


def network(published: ModuleType, *, training: bool, depth: int, batch: int, rounds: int) -> dict[str, Any]:
    """Return a training step, or an evaluation, of `ShakeResNet(depth, 32, 10)` of both packages, equal in state."""
    torch.manual_seed(0)
    theirs, mine = published.ShakeResNet(depth, 32, 10), ours.ShakeResNet(depth, 32, 10)
    mine.load_state_dict(theirs.state_dict())
    x, labels = torch.randn(batch, 3, 32, 32), torch.arange(batch) % 10
    networks: dict[str, nn.Module] = {"ShakeResNet": mine, "published": theirs}
    baseline = "published"
    if not training:
        for each in networks.values():
            each.eval()
        networks["fused"] = mine.fuse_for_inference()

    def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        cross_entropy(model(x), labels).backward()
        optimizer.step()

    @torch.no_grad()
    def evaluation(model: nn.Module) -> Tensor:
        logits: Tensor = model(x)
        return logits

    if training:
        sgd = {name: torch.optim.SGD(n.parameters(), lr=0.01, momentum=0.9) for name, n in networks.items()}
        ways = {name: (lambda n=n, name=name: step(n, sgd[name])) for name, n in networks.items()}
    else:
        ways = {name: (lambda n=n: evaluation(n)) for name, n in networks.items()}
    seconds = interleaved(ways, rounds=rounds, warm_up=1)
    compared = [summary(seconds, ours=name, baseline=baseline) for name in networks if name != baseline]
    return {
        "what": f"{'a training step' if training else 'evaluation'} of ShakeResNet({depth}, 32, 10)",
        "batch": [batch, 3, 32, 32],
        "dtype": "float32",
        "rounds": rounds,
        "median_ms": compared[0]["median_ms"],
        "ratios": [row["ratio"] for row in compared],
    }


def main() -> None:
    """Measure, print, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    site = os.environ.get("GRADSPEC_PUBLISHED", "build/peers/site-packages")
    parser.add_argument("--site", type=Path, default=site, help="the folder that holds archai 1.0.0")
    parser.add_argument("--out", type=Path, help="where to write the record; only printed without it")
    parser.add_argument("--samples", type=int, default=SHAPE[0], help="the batch of the function")
    parser.add_argument("--depth", type=int, default=26, help="the depth of the network")
    parser.add_argument("--batch", type=int, default=32, help="the batch of the network")
    parser.add_argument("--rounds", type=int, default=21, help="how often each is timed")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="the threads of torch")
    parser.add_argument("--function-only", action="store_true", help="print the measurements of the function, as JSON")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.cuda.FloatTensor = torch.FloatTensor  # type: ignore[misc,assignment]
    published = alone(options.site, f"{FOLDER}.shakeshake")
    fresh = sizes(published, samples=options.samples, rounds=options.rounds)
    if options.function_only:
        print(json.dumps(fresh))
        return
    again = [sys.executable, __file__, *sys.argv[1:], "--function-only"]
    done = subprocess.run(again, env={**os.environ, **RECYCLED}, check=True, capture_output=True, text=True)
    functions = [*fresh, *json.loads(done.stdout)]
    networks = alone(options.site, f"{FOLDER}.shake_resnet")
    how = {"depth": options.depth, "batch": options.batch, "rounds": options.rounds}
    record = {
        "name": "shake_shake",
        "what": "ShakeShake and ShakeResNet against the published code of archai 1.0.0, interleaved; "
        "torch.FloatTensor stands in for the torch.cuda.FloatTensor of the published code",
        "provenance": machine(),
        "measurements": [*functions, *(network(networks, training=training, **how) for training in (True, False))],
        "figures": figures(functions),
    }
    for row in record["measurements"]:
        print(f"{row['what']}{', '.join(('', str(row['shape']), row['memory'])) if 'memory' in row else ''}:")
        print("  " + ", ".join(f"{name} {ms:.2f} ms" for name, ms in row["median_ms"].items()))
        for each in row["ratios"]:
            low, high = each["quartiles"]
            print(f"  {each['of']} / {each['to']}: {each['median']:.3f} (quartiles {low:.3f} to {high:.3f})")
    if options.out:
        write_experiment(record, options.out)
        print(f"written to {options.out}")


if __name__ == "__main__":
    main()
