"""The cost and the sensitivity of the law `vjp`, beside `torch.autograd.gradcheck`.

`python -m gradspec_lab.benchmarks.sensitivity --out docs/records/benchmarks/sensitivity.json`
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from gradspec import Case, FunctionSpec, Status, Supports
from gradspec.law import TrialOf
from gradspec.laws import LAWS
from gradspec.profile import load_profile
from gradspec.report import write_experiment
from gradspec_lab.benchmarks._interleaved import interleaved, machine, summary

VJP = next(law for law in LAWS if law.name == "vjp")
#: Elements, and how often each way is timed. Slow gradcheck takes a column of the Jacobian for each element.
SIZES = {100: 401, 1_000: 401, 10_000: 401, 1_000_000: 31}
SLOW = {100: 11, 1_000: 3}
SEEDS = 10


class Cube(torch.autograd.Function):
    """The cube, with the gradient that `wrong` makes of the right one."""

    wrong: Callable[[torch.Tensor], torch.Tensor] = staticmethod(lambda gradient: gradient)

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x**3

    @classmethod
    def backward(cls, ctx: Any, v: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return cls.wrong(3 * x**2 * v)


class Millionth(Cube):
    """The gradient of the element in the middle is off by a millionth of itself."""

    @staticmethod
    def wrong(gradient: torch.Tensor) -> torch.Tensor:
        gradient[gradient.numel() // 2] *= 1 + 1e-6
        return gradient


class Zero(Cube):
    """No gradient at all."""

    wrong = staticmethod(torch.zeros_like)


def trial(function: type[Cube], x: torch.Tensor, seed: int = 0) -> Any:
    """Return what the law is called with: one case."""
    case = Case(name="x", args=(x,))
    spec = FunctionSpec(
        name="cube",
        function=function.apply,
        primal=lambda x: x**3,
        surrogate=lambda x: x**3,
        wrt=("x",),
        cases=lambda make: iter((case,)),
        supports=Supports.all(),
    )
    return TrialOf(spec=spec, case=case, profile=load_profile("every-case"), seed=seed)


def draw(elements: int, seed: int = 0) -> torch.Tensor:
    """Return a float64 input, at which the mean derivative of the cube is three quarters."""
    return torch.randn(elements, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) / 2


def cost(elements: int, rounds: int) -> dict[str, Any]:
    """Time one check beside one forward and backward of the same function."""
    x = draw(elements)
    leaf, v, checked = x.clone().requires_grad_(), draw(elements, 1), trial(Cube, x)
    ways: dict[str, Callable[[], object]] = {
        "forward and backward": lambda: torch.autograd.grad(Cube.apply(leaf), leaf, v),
        "law vjp": lambda: VJP.check(checked),
        "gradcheck, fast": lambda: torch.autograd.gradcheck(Cube.apply, (leaf,), fast_mode=True),
    }
    row = {"elements": elements, "rounds": rounds} | _ratios(interleaved(ways, rounds=rounds))
    if elements in SLOW:
        del ways["law vjp"], ways["gradcheck, fast"]
        ways["gradcheck, slow"] = lambda: torch.autograd.gradcheck(Cube.apply, (leaf,))
        slow = _ratios(interleaved(ways, rounds=SLOW[elements], warm_up=1))
        row["median_ms"] |= {"gradcheck, slow": slow["median_ms"]["gradcheck, slow"]}
        row["ratio"] |= slow["ratio"]
    return row


def _ratios(seconds: Mapping[str, list[float]]) -> dict[str, Any]:
    base = "forward and backward"
    found = {way: summary(seconds, ours=way, baseline=base) for way in seconds if way != base}
    return {
        "median_ms": next(iter(found.values()))["median_ms"],
        "ratio": {way: {k: row["ratio"][k] for k in ("median", "quartiles")} for way, row in found.items()},
    }


def seen(function: type[Cube], elements: int, seeds: int) -> dict[str, float]:
    """Return the share of seeds for which the law, and fast gradcheck, notice that the gradient is wrong."""
    law, fast = [], []
    for seed in range(seeds):
        x = draw(elements, seed)
        law.append(VJP.check(trial(function, x, seed)).status is Status.BROKEN)
        torch.manual_seed(seed)  # gradcheck draws from the global generator
        fast.append(not _accepts(function, x.requires_grad_()))
    return {"vjp": statistics.mean(law), "gradcheck_fast": statistics.mean(fast)}


def _accepts(function: type[Cube], x: torch.Tensor) -> bool:
    """Return what fast gradcheck says; where it fails, its message needs whole Jacobians, and that is left out."""
    internals = sys.modules["torch.autograd.gradcheck"]
    with mock.patch.object(internals, "_run_slow_mode_and_get_error", return_value=""):
        return bool(torch.autograd.gradcheck(function.apply, (x,), fast_mode=True, raise_exception=False))


def curve(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figure of the site: the ratios by size."""
    ways = list(rows[0]["ratio"])
    lines = []
    for way in ways:
        mine = [row for row in rows if way in row["ratio"]]
        values = [row["ratio"][way]["median"] for row in mine]
        lines.append({"label": way, "x": [row["elements"] for row in mine], "runs": [values]})
    x = {"label": "elements", "scale": "log", "format": ",.0f"}
    y = {"label": "times one forward and backward", "scale": "log", "format": ".3g"}
    return {"title": "What one check costs", "x": x, "y": y, "lines": lines}


def shares(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figure of what is seen: the share of seeds, by size."""
    rows = record["seen"]["zero_gradient"]
    lines = [
        {"label": label, "x": [row["elements"] for row in rows], "runs": [[row["seen"][way] for row in rows]]}
        for way, label in (("vjp", "law vjp"), ("gradcheck_fast", "gradcheck, fast"))
    ]
    x = {"label": "elements", "scale": "log", "format": ",.0f"}
    y = {"label": "share of seeds that notice a zero gradient", "format": ".0%"}
    return {"title": "Who notices that the gradient is zero", "x": x, "y": y, "lines": lines}


def main() -> None:
    """Measure, print, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="where to write the record; only printed without it")
    parser.add_argument("--rounds", type=int, help="how often each is timed, at every size")
    parser.add_argument("--largest", type=int, default=1_000_000, help="the largest size that is timed")
    options = parser.parse_args()
    costs = [cost(n, options.rounds or rounds) for n, rounds in SIZES.items() if n <= options.largest]
    record: dict[str, Any] = {
        "name": "sensitivity",
        "what": "one check of the law vjp on x**3 in float64, x normal of deviation 0.5, "
        "against one forward and backward, interleaved; "
        "and the share of seeds that notice a wrong gradient",
        "provenance": machine() | {"command": "python -m gradspec_lab.benchmarks.sensitivity", "seeds": SEEDS},
        "measurements": costs,
        "seen": {
            "millionth": [{"elements": n, "seen": seen(Millionth, n, SEEDS)} for n in (100, 10_000)],
            "zero_gradient": [{"elements": n, "seen": seen(Zero, n, SEEDS)} for n in (100, 1_000, 10_000, 100_000)],
        },
    }
    record["figures"] = {"cost": curve(costs), "zero": shares(record)}
    for row in record["measurements"]:
        said = ", ".join(f"{way} {found['median']:.1f}" for way, found in row["ratio"].items())
        print(f"{row['elements']} elements, times one forward and backward: {said}")
    for kind in ("millionth", "zero_gradient"):
        for row in record["seen"][kind]:
            print(f"{kind} at {row['elements']}: {row['seen']}")
    if options.out:
        write_experiment(record, options.out)
        print(f"written to {options.out}")


if __name__ == "__main__":
    main()
