"""The overhead of a backward pass over text: nodes a second with a model that answers at once.

`python tests/benchmarks/text_engine.py --out docs/records/benchmarks/text_engine.json`
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _interleaved import machine

from gradspec.text import Function, Variable

SCHEMA = 1


class Ask(Function):
    """What a call of a model is without the model: it saves its prompt, and writes feedback that names it."""

    @staticmethod
    def forward(ctx: Any, prompt: Variable) -> Variable:
        ctx.save_for_backward(prompt)
        return Variable("answer", role="answer")

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Variable:
        (prompt,) = ctx.saved_variables
        return Variable(f"feedback to {prompt.role}: {grad_out.role}", role="feedback")


class Join(Function):
    """The sum at the top of a wide graph."""

    @staticmethod
    def forward(ctx: Any, *answers: Variable) -> Variable:
        return Variable("all answers", role="answers")

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> tuple[Variable, ...]:
        return (grad_out,) * len(ctx.needs_input_grad)


def chain(n: int) -> Variable:
    """Return the last of n calls, each of the one before."""
    answer = Variable("prompt", role="prompt", requires_grad=True)
    for _ in range(n):
        answer = Ask.apply(answer)
    return answer


def wide(n: int) -> Variable:
    """Return a join of n calls of one prompt."""
    prompt = Variable("prompt", role="prompt", requires_grad=True)
    return Join.apply(*[Ask.apply(prompt) for _ in range(n)])


def rates(build: Callable[[int], Variable], nodes: int, rounds: int) -> dict[str, Any]:
    """Return nodes a second, forward and backward; of the processor's time too, for other programs take the clock's."""
    clocks = {"wall": time.perf_counter, "cpu": time.process_time}
    seconds: dict[str, list[float]] = {f"{way}_{clock}": [] for way in ("forward", "backward") for clock in clocks}
    for _ in range(rounds):
        gc.collect()
        start = {name: clock() for name, clock in clocks.items()}
        top = build(nodes)
        built = {name: clock() for name, clock in clocks.items()}
        gc.collect()
        begin = {name: clock() for name, clock in clocks.items()}
        top.backward(Variable("seed", role="seed"))
        for name, clock in clocks.items():
            seconds[f"backward_{name}"].append(clock() - begin[name])
            seconds[f"forward_{name}"].append(built[name] - start[name])
        del top
    return {
        "graph": build.__name__,
        "nodes": nodes,
        "rounds": rounds,
        "nodes_a_second": {name: round(nodes / statistics.median(taken)) for name, taken in seconds.items()},
        "best_nodes_a_second": {name: round(nodes / min(taken)) for name, taken in seconds.items()},
    }


def main() -> None:
    """Measure, print, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="where to write the record; only printed without it")
    parser.add_argument("--rounds", type=int, default=21, help="how often each graph is timed")
    parser.add_argument("--scale", type=float, default=1.0, help="a factor for the numbers of nodes")
    options = parser.parse_args()
    graphs = [(chain, 1_000), (chain, 10_000), (chain, 100_000), (wide, 1_000), (wide, 10_000)]
    rows = [
        rates(build, max(1, round(nodes * options.scale)), max(1, options.rounds * 1_000 // max(nodes, 1_000)))
        for build, nodes in graphs
    ]
    record = {
        "schema": SCHEMA,
        "name": "text_engine",
        "what": "nodes a second of a backward pass over text, with a model that answers at once",
        "provenance": {**machine(), "load_average": os.getloadavg()[0]},
        "measurements": rows,
    }
    for row in rows:
        print(row["graph"], row["nodes"], row["nodes_a_second"], "best", row["best_nodes_a_second"])
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        print(f"written to {options.out}")


if __name__ == "__main__":
    main()
