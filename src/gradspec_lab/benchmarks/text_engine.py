"""The overhead of a backward pass over text: nodes a second with a model that answers at once.

`python -m gradspec_lab.benchmarks.text_engine --out docs/records/benchmarks/text_engine.json`

Three kinds of nodes: the least that a call of a model is, which shows what the engine costs; `ops.chat`, which writes
out a prompt too; and TextGrad's call of a model, which does, where --site (or GRADSPEC_PUBLISHED) names a folder that
holds textgrad 0.1.8 and tenacity.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gradspec.report import write_experiment
from gradspec.text import Function, Variable, ops
from gradspec_lab.benchmarks._interleaved import machine


def at_once(messages: object) -> str:
    """Answer without any delay."""
    return "answer"


class Ask(Function):
    """The least that a call of a model is: it saves its prompt, and asks the model for feedback to it."""

    @staticmethod
    def forward(ctx: Any, prompt: Variable) -> Variable:
        ctx.save_for_backward(prompt)
        return Variable(at_once(prompt.data), role="answer")

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Variable:
        (prompt,) = ctx.saved_variables
        return Variable(at_once(f"feedback to {prompt.role}: {grad_out.role}"), role="feedback")


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


def chat_chain(n: int) -> Variable:
    """Return the last of n chats, each of the one before."""
    answer = Variable("prompt", role="prompt", requires_grad=True)
    for _ in range(n):
        answer = ops.chat(at_once, [{"role": "user", "content": answer}])
    return answer


def chat_wide(n: int) -> Variable:
    """Return the sum of n chats of one prompt."""
    prompt = Variable("prompt", role="prompt", requires_grad=True)
    return ops.sum([ops.chat(at_once, [{"role": "user", "content": prompt}]) for _ in range(n)])


def ours(top: Variable) -> None:
    """Run the backward pass that is timed."""
    top.backward(Variable("seed", role="seed"))


def rates(
    build: Callable[[int], Any],
    nodes: int,
    rounds: int,
    *,
    kind: str = "graph",
    backward: Callable[[Any], object] = ours,
) -> dict[str, Any]:
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
        backward(top)
        for name, clock in clocks.items():
            seconds[f"backward_{name}"].append(clock() - begin[name])
            seconds[f"forward_{name}"].append(built[name] - start[name])
        del top
    return {
        kind: build.__name__.removeprefix("chat_"),
        "nodes": nodes,
        "rounds": rounds,
        "nodes_a_second": {name: round(nodes / statistics.median(taken)) for name, taken in seconds.items()},
        "best_nodes_a_second": {name: round(nodes / min(taken)) for name, taken in seconds.items()},
    }


def sizes(graphs: list[tuple[Any, int]], rounds: int, scale: float) -> list[tuple[Any, int, int]]:
    """Return each graph with its number of nodes and how often it is timed: the large ones less often."""
    return [(build, max(1, round(n * scale)), max(3, rounds * 1_000 // max(n, 1_000))) for build, n in graphs]


def textgrad(site: str | None, rounds: int, scale: float) -> tuple[str, list[dict[str, Any]]]:
    """Return what was measured of TextGrad, in a process of its own, and what to say of it."""
    if not site or not (Path(site) / "textgrad").is_dir():
        return "not measured: no folder with textgrad 0.1.8 was given", []
    command = [sys.executable, str(Path(__file__).with_name("_textgrad.py")), str(Path(site).resolve())]
    done = subprocess.run([*command, str(rounds), str(scale)], capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return f"not measured: {last}", []
    return "0.1.8, recursion limit raised, its log silenced", json.loads(done.stdout)


def figures(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the site draws of the measurements: the backward pass over chains, by their length."""
    kinds = {"ops.chat": "graph of ops.chat", "TextGrad 0.1.8": "graph of TextGrad", "the engine, no prompts": "graph"}
    chains = {label: [row for row in rows if row.get(kind) == "chain"] for label, kind in kinds.items()}
    lines = [
        {
            "label": label,
            "x": [row["nodes"] for row in found],
            "runs": [[row["nodes_a_second"]["backward_wall"] for row in found]],
        }
        for label, found in chains.items()
        if found
    ]
    return {
        "backward": {
            "title": "Backward pass over a chain of calls",
            "x": {"label": "nodes of the chain", "scale": "log"},
            "y": {"label": "nodes a second", "format": ",.0f"},
            "lines": lines,
        }
    }


def main() -> None:
    """Measure, print, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="where to write the record; only printed without it")
    parser.add_argument("--rounds", type=int, default=21, help="how often each graph is timed")
    parser.add_argument("--scale", type=float, default=1.0, help="a factor for the numbers of nodes")
    parser.add_argument("--site", default=os.environ.get("GRADSPEC_PUBLISHED"), help="holds textgrad 0.1.8")
    options = parser.parse_args()
    graphs = [(chain, 1_000), (chain, 10_000), (chain, 100_000), (wide, 1_000), (wide, 10_000)]
    chats = [(chat_chain, 1_000), (chat_chain, 10_000), (chat_wide, 1_000), (chat_wide, 10_000)]
    rows = [rates(*size) for size in sizes(graphs, options.rounds, options.scale)]
    rows += [rates(*size, kind="graph of ops.chat") for size in sizes(chats, options.rounds, options.scale)]
    about, published = textgrad(options.site, options.rounds, options.scale)
    record = {
        "name": "text_engine",
        "what": "nodes a second of a backward pass over text, with a model that answers at once",
        "TextGrad": about,
        "provenance": {**machine(), "load_average": os.getloadavg()[0]},
        "measurements": rows + published,
        "figures": figures(rows + published),
    }
    print("TextGrad", about)
    for row in rows + published:
        print(*list(row.values())[:2], row["nodes_a_second"], "best", row["best_nodes_a_second"])
    if options.out:
        write_experiment(record, options.out)
        print(f"written to {options.out}")


if __name__ == "__main__":
    main()
