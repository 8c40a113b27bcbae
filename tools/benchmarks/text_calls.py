"""How long a backward pass over text waits for its calls: a real HTTP server on the loopback, 100 ms a completion.

`python tools/benchmarks/text_calls.py --out docs/records/benchmarks/text_calls.json`

Sixteen branches are joined by a sum, with a call on top: 17 calls in backward, and 33 where the branches share a system
prompt that requires grad. Who waits as little as the graph allows needs two times 100 ms; with 16 at once and 33 calls,
three times. The server is a process of its own.
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

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from _interleaved import machine

from gradspec.report import write_experiment
from gradspec.text import Variable, concurrency
from gradspec.text.lm import Client, OpenAIModel
from text.lm import chats

DELAY = 0.1
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


def waited(model: Any, *, shared: bool, limit: int, rounds: int) -> dict[str, Any]:
    """Return the seconds of a backward pass, the first left out: it opens the connections."""
    seconds = []
    for _ in range(rounds + 1):
        system = Variable("Be brief.", role="system prompt", requires_grad=True) if shared else None
        with concurrency(limit):
            parameters, loss = chats.branches(model, system)
        start = time.perf_counter()
        loss.backward(Variable("shorter"), max_concurrency=limit)
        seconds.append(time.perf_counter() - start)
        if not all(parameter.grad for parameter in parameters):
            raise RuntimeError("a parameter got no gradient")
    return row("gradspec.text", shared, limit, seconds[1:])


def row(way: str, shared: bool, limit: int, seconds: list[float]) -> dict[str, Any]:
    """Return what the record says of one way."""
    return {
        "backward pass": way,
        "shared_system_prompt": shared,
        "calls": 33 if shared else 17,
        "max_concurrency": limit,
        "rounds": len(seconds),
        "seconds": {"median": statistics.median(seconds), "best": min(seconds), "worst": max(seconds)},
    }


def textgrad(site: str, url: str, rounds: int) -> list[dict[str, Any]]:
    """Return what TextGrad needs for the same programs, with the same client."""
    from _textgrad import load

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
        rows.append(row("TextGrad 0.1.8", shared, 1, seconds))
    return rows


def main() -> None:
    """Measure, print, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="where to write the record; only printed without it")
    parser.add_argument("--rounds", type=int, default=9, help="how often each program is timed")
    parser.add_argument("--site", default=os.environ.get("GRADSPEC_PUBLISHED"), help="holds textgrad 0.1.8")
    options = parser.parse_args()
    ways = [(False, 1), (False, 16), (True, 16), (True, 64)]
    about = "not measured: no folder with textgrad 0.1.8 was given"
    with server() as url:
        model = Client(OpenAIModel("echo", base_url=url, timeout=30))
        rows = [waited(model, shared=shared, limit=limit, rounds=options.rounds) for shared, limit in ways]
        if options.site and (Path(options.site) / "textgrad").is_dir():
            rows += textgrad(options.site, url, min(3, options.rounds))
            about = "its calls are made one by one"
    record = {
        "name": "text_calls",
        "what": "seconds of a backward pass over text, 16 branches joined by a sum, with a server on the loopback that "
        "answers after 100 ms",
        "TextGrad": about,
        "provenance": {**machine(), "load_average": os.getloadavg()[0]},
        "measurements": rows,
    }
    print("TextGrad", about)
    for found in rows:
        print(*found.values())
    if options.out:
        write_experiment(record, options.out, __file__)
        print(f"written to {options.out}")


if __name__ == "__main__":
    main()
