"""Forward and backward of `GradFactor.apply` against the least that a hand-written Function can do.

`python tests/benchmarks/gradient_scaling.py --out docs/records/benchmarks/gradient_scaling.json`
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from _interleaved import interleaved, machine, summary

from gradspec._seal import sealed
from gradspec.functions import GradFactor

SCHEMA = 1
FACTOR = 0.1


class Minimal(torch.autograd.Function):
    """A view in forward, one multiplication in backward, and nothing else."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, f: float) -> torch.Tensor:
        ctx.f = f
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        return grad * ctx.f, None


def forward_bytes(function: type[torch.autograd.Function], x: torch.Tensor) -> int:
    """Return the bytes that one forward pass allocates, as torch's profiler counts them."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        function.apply(x, FACTOR)
    return sum(max(0, event.self_cpu_memory_usage) for event in profile.events())


def measure(*, elements: int, rounds: int) -> dict[str, Any]:
    """Return medians, ratio and allocations for a float32 tensor of `elements` elements."""
    x = torch.randn(elements, requires_grad=True)
    cotangent = torch.randn(elements)
    functions = {"GradFactor": GradFactor, "minimal": Minimal}

    def both_passes(function: type[torch.autograd.Function]) -> object:
        return torch.autograd.grad(function.apply(x, FACTOR), x, cotangent)

    ways = {name: (lambda function=function: both_passes(function)) for name, function in functions.items()}
    return {
        "elements": elements,
        "bytes": elements * x.element_size(),
        "dtype": "float32",
        "rounds": rounds,
        **summary(interleaved(ways, rounds=rounds), ours="GradFactor", baseline="minimal"),
        "forward_bytes": {name: forward_bytes(function, x) for name, function in functions.items()},
    }


def main() -> None:
    """Measure, print, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="where to write the record; only printed without it")
    parser.add_argument("--mib", type=int, default=64, help="size of the tensor")
    parser.add_argument("--rounds", type=int, default=51, help="how often each is timed")
    options = parser.parse_args()
    large = measure(elements=options.mib * 2**20 // 4, rounds=options.rounds)
    # On a small tensor nothing but the overhead of a call is left: what the checks of the arguments cost.
    small = measure(elements=1, rounds=20 * options.rounds)
    record = {
        "schema": SCHEMA,
        "name": "gradient_scaling",
        "what": "forward and backward of GradFactor.apply against a minimal hand-written Function, interleaved",
        "provenance": machine(),
        "measurements": [large, small],
    }
    for row in record["measurements"]:
        times = ", ".join(f"{name} {ms:.3f} ms" for name, ms in row["median_ms"].items())
        low, high = row["ratio"]["quartiles"]
        ratio = f"ratio {row['ratio']['median']:.3f} (quartiles {low:.3f} to {high:.3f})"
        print(f"{row['bytes']} bytes: {times}; {ratio}; forward allocates {row['forward_bytes']['GradFactor']} bytes")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(sealed(record), indent=1) + "\n", encoding="utf-8")
        print(f"written to {options.out}")


if __name__ == "__main__":
    main()
