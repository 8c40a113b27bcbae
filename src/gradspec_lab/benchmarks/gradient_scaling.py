"""Forward and backward of `GradFactor` and `GradMultiply` against the least that a hand-written Function can do.

`python -m gradspec_lab.benchmarks.gradient_scaling --out docs/records/benchmarks/gradient_scaling.json`

Beside them stand the least in the form with `setup_context`, which vmap and torch.func need, and the way that needs no
Function, `x.detach() + f * (x - x.detach())`, called "with detach".
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from gradspec.functions import GradFactor, GradMultiply
from gradspec.report import write_experiment
from gradspec_lab.benchmarks._drawn import figure, ratio
from gradspec_lab.benchmarks._interleaved import interleaved, machine, summary
from gradspec_lab.benchmarks._peak import peak_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor

FACTOR = 0.1
BASELINE = "minimal"
SEPARATE = "minimal with setup_context"
#: Each size is so many times as large as the next; the last one is a single element.
STEP, STEPS = 16, 5
#: How many more rounds than the largest size the others get: they take less time, and vary more.
MORE = 20


class Minimal(torch.autograd.Function):
    """A view in forward, one multiplication in backward, and nothing else."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, f: float) -> Tensor:
        ctx.f = f
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad * ctx.f, None


class Separate(torch.autograd.Function):
    """The same in the form that vmap and torch.func need, whose every call torch binds to the signature of forward."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, f: float) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
        ctx.f = inputs[1]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad * ctx.f, None


def with_detach(x: Tensor, f: float) -> Tensor:
    """Return x, with a gradient of f, by operations of torch alone."""
    return x.detach() + f * (x - x.detach())


WAYS: Mapping[str, Callable[[Tensor, float], Tensor]] = {
    "GradFactor": GradFactor.apply,
    "GradMultiply": GradMultiply.apply,
    BASELINE: Minimal.apply,
    SEPARATE: Separate.apply,
    "with detach": with_detach,
}


def measure(*, elements: int, rounds: int) -> dict[str, Any]:
    """Return medians, ratios and memory for a float32 tensor of `elements` elements."""
    x = torch.randn(elements, requires_grad=True)
    cotangent = torch.randn(elements)

    def forward(way: str) -> Tensor:
        return WAYS[way](x, FACTOR)

    def both_passes(way: str) -> object:
        return torch.autograd.grad(forward(way), x, cotangent)

    seconds = interleaved({way: (lambda way=way: both_passes(way)) for way in WAYS}, rounds=rounds)
    compared = [summary(seconds, ours=way, baseline=BASELINE) for way in WAYS if way != BASELINE]
    return {
        "elements": elements,
        "bytes": x.nbytes,
        "dtype": "float32",
        "rounds": rounds,
        "median_ms": compared[0]["median_ms"],
        "ratios": [each["ratio"] for each in compared],
        "forward_bytes": {way: peak_bytes(lambda way=way: forward(way)) for way in WAYS},
        "peak_bytes": {way: peak_bytes(lambda way=way: both_passes(way)) for way in WAYS},
    }


def figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return time and memory of each function over the size, beside the way that needs no Function."""
    # A single element has nothing but the overhead of a call, and memory of torch's own as large as itself.
    sized = [row for row in rows if row["elements"] > 1]
    x = "elements of x"
    slower = {"label": "times as long as a minimal Function", "format": ".2f"}
    held = {"label": "bytes held at once, in sizes of x", "format": ".2f"}

    def times(way: str) -> list[float]:
        return [ratio(row, way, BASELINE) for row in rows]

    def memory(way: str, of: str) -> list[float]:
        return [row[of][way] / row["bytes"] for row in sized]

    found = {}
    for name, way in (("grad_factor", "GradFactor"), ("grad_multiply", "GradMultiply")):
        lines = {way: times(way), SEPARATE: times(SEPARATE), "with detach": times("with detach")}
        found[f"{name}_time"] = figure("Time of both passes", x, [row["elements"] for row in rows], slower, lines)
        lines = {
            f"{way}, both passes": memory(way, "peak_bytes"),
            "with detach, both passes": memory("with detach", "peak_bytes"),
            f"{way}, forward alone": memory(way, "forward_bytes"),
        }
        found[f"{name}_memory"] = figure(
            "Memory beside the arguments", x, [row["elements"] for row in sized], held, lines
        )
    return found


def main() -> None:
    """Measure, print, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="where to write the record; only printed without it")
    parser.add_argument("--mib", type=int, default=64, help="size of the largest tensor")
    parser.add_argument("--rounds", type=int, default=51, help="how often each is timed")
    options = parser.parse_args()
    largest = options.mib * 2**20 // 4
    # On a small tensor nothing but the overhead of a call is left: what the checks of the arguments cost.
    smaller = (*(max(2, largest // STEP**i) for i in range(1, STEPS)), 1)
    rows = [
        measure(elements=largest, rounds=options.rounds),
        *(measure(elements=elements, rounds=MORE * options.rounds) for elements in smaller),
    ]
    record = {
        "name": "gradient_scaling",
        "what": "forward and backward of GradFactor.apply and GradMultiply.apply against a minimal hand-written "
        "Function, against one with setup_context, which vmap and torch.func need, and against "
        "x.detach() + f * (x - x.detach()), which needs no Function; interleaved",
        "provenance": machine(),
        "measurements": rows,
        "figures": figures(rows),
    }
    for row in rows:
        times = ", ".join(f"{name} {ms:.3f} ms" for name, ms in row["median_ms"].items())
        ratios = ", ".join(f"{each['of']} {each['median']:.3f}" for each in row["ratios"])
        print(f"{row['bytes']} bytes: {times}; over {BASELINE}: {ratios}; at the most {row['peak_bytes']} bytes")
    if options.out:
        write_experiment(record, options.out)
        print(f"written to {options.out}")


if __name__ == "__main__":
    main()
