"""How long programs of texts wait for their calls: a real HTTP server on the loopback, 100 ms a completion.

`python -m gradspec_lab.benchmarks.text_calls --out docs/records/benchmarks/text_calls.json`

Branches are joined by a sum, with a call on top: backward makes a call for each branch and one more, and twice as
many for the branches where they share a system prompt that requires grad. The floor is plain threads of http.client
that send the same bodies in the same waves; both are timed by turns, and `times_the_floor` is the median of the
quotients. The server is a process of its own.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3] / "tests"))

from gradspec.report import write_experiment
from gradspec.text import Variable, concurrency, ops
from gradspec.text.lm import Client, OpenAIModel
from gradspec_lab.benchmarks._interleaved import machine
from text.lm import chats
from text.lm.floor import Floor, bodies, program

DELAY = 0.1
OURS, FLOOR = "gradspec.text", "threads of http.client"
#: Branches, whether they share a system prompt, calls at once.
PASSES = ((16, False, 1), (16, False, 16), (16, True, 16), (16, True, 64), (64, False, 64))
SERVER = Path(chats.__file__).with_name("server.py")


@contextmanager
def server() -> Iterator[str]:
    """Start the server, and yield its address."""
    command = [sys.executable, str(SERVER), str(DELAY)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()  # it ends with its input


def by_turns(
    model: Any, url: str, *, branches: int, shared: bool, limit: int, rounds: int, backward: bool = True
) -> list[dict[str, Any]]:
    """Return the seconds of a pass and of its floor, the first round left out: it opens the connections."""
    least = Floor(url, limit)
    first, rest = bodies(url, branches, shared, limit)
    waves = [first, rest] if backward else [rest]
    seconds: dict[str, list[float]] = {OURS: [], FLOOR: []}
    for _ in range(rounds + 1):
        if backward:
            with concurrency(64):
                loss = program(model, branches, shared)
            start = time.perf_counter()
            loss.backward(Variable("shorter"), max_concurrency=limit)
        else:
            start = time.perf_counter()
            with concurrency(limit):
                for number in range(branches):
                    ops.chat(model, f"prompt {number}")
        seconds[OURS].append(time.perf_counter() - start)
        seconds[FLOOR].append(least.run(waves))
    least.pool.shutdown()
    ratios = [ours / floor for ours, floor in zip(seconds[OURS][1:], seconds[FLOOR][1:], strict=True)]
    case = {
        "pass": "backward" if backward else "forward",
        "branches": branches,
        "shared_system_prompt": shared,
        "calls": sum(map(len, waves)),
        "max_concurrency": limit,
    }
    rows = [row(way, case, found[1:]) for way, found in seconds.items()]
    rows[0]["times_the_floor"] = statistics.median(ratios)
    return rows


def row(way: str, case: dict[str, Any], seconds: list[float]) -> dict[str, Any]:
    """Return what the record says of one way."""
    spread = {"median": statistics.median(seconds), "best": min(seconds), "worst": max(seconds)}
    return {"way": way, **case, "rounds": len(seconds), "seconds": spread}


def textgrad(site: str, url: str, rounds: int) -> list[dict[str, Any]]:
    """Return what TextGrad needs for the same programs, with the same client."""
    from gradspec_lab.benchmarks._textgrad import load

    published = load(site)
    from textgrad.autograd.llm_ops import LLMCall

    model = OpenAIModel("echo", base_url=url, timeout=30)

    def engine(prompt: str, system_prompt: str | None = None) -> str:
        said = [{"role": "system", "content": system_prompt}] if system_prompt else []
        return model([*said, {"role": "user", "content": prompt}]).text

    rows = []
    for shared in (False, True):
        seconds = []
        for _ in range(rounds):
            system = published.Variable("Be brief.", role_description="system prompt") if shared else None
            ask = LLMCall(engine, system)
            prompts = [published.Variable(f"prompt {i}", role_description=f"prompt {i}") for i in range(chats.BRANCHES)]
            loss = LLMCall(engine)(published.sum([ask(prompt) for prompt in prompts]))
            start = time.perf_counter()
            loss.backward(engine=engine)
            seconds.append(time.perf_counter() - start)
        case = {"pass": "backward", "branches": chats.BRANCHES, "shared_system_prompt": shared}
        rows.append(row("TextGrad 0.1.8", {**case, "calls": 33 if shared else 17, "max_concurrency": 1}, seconds))
    return rows


def figures(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the site draws of the measurements: seconds of a backward pass, by its calls.

    Where the limit is below the branches, these wait for one another; such a pass is not drawn.
    """
    drawn = {
        "gradspec.text": [row for row in rows if row["way"] == OURS and row["max_concurrency"] >= row["calls"] - 1],
        "threads of http.client": [
            row for row in rows if row["way"] == FLOOR and row["max_concurrency"] >= row["calls"] - 1
        ],
        "TextGrad 0.1.8, one at a time": [row for row in rows if row["way"].startswith("TextGrad")],
    }
    lines = []
    for label, found in drawn.items():
        passes = [row for row in found if row["pass"] == "backward"]
        if passes:
            seconds = [row["seconds"]["median"] for row in passes]
            lines.append({"label": label, "x": [row["calls"] for row in passes], "runs": [seconds]})
    return {
        "backward": {
            "title": "Backward pass with a server that answers after 100 ms",
            "x": {"label": "calls of a model"},
            "y": {"label": "seconds", "format": ".3g", "zero": True},
            "lines": lines,
        }
    }


def main() -> None:
    """Measure, print, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="where to write the record; only printed without it")
    parser.add_argument("--rounds", type=int, default=9, help="how often each program is timed")
    parser.add_argument("--site", default=os.environ.get("GRADSPEC_PUBLISHED"), help="holds textgrad 0.1.8")
    options = parser.parse_args()
    about = "not measured: no folder with textgrad 0.1.8 was given"
    with server() as url:
        model = Client(OpenAIModel("echo", base_url=url, timeout=30))
        rows = []
        for branches, shared, limit in PASSES:
            rows += by_turns(model, url, branches=branches, shared=shared, limit=limit, rounds=options.rounds)
        rows += by_turns(model, url, branches=16, shared=False, limit=16, rounds=options.rounds, backward=False)
        if options.site and (Path(options.site) / "textgrad").is_dir():
            rows += textgrad(options.site, url, min(3, options.rounds))
            about = "its calls are made one by one"
    record = {
        "name": "text_calls",
        "what": "seconds of a pass over branches of text that are joined by a sum, and of plain threads that make "
        "the same calls, by turns, with a server on the loopback that answers after 100 ms",
        "TextGrad": about,
        "provenance": {**machine(), "load_average": os.getloadavg()[0]},
        "measurements": rows,
        "figures": figures(rows),
    }
    print("TextGrad", about)
    for found in rows:
        print(*found.values())
    if options.out:
        write_experiment(record, options.out)
        print(f"written to {options.out}")


if __name__ == "__main__":
    main()
