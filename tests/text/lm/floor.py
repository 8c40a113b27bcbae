"""How far a backward pass is above the floor: plain threads of http.client that make the same calls in the same waves.

    python tests/text/lm/floor.py [ROUNDS]

Prints the medians of both, interleaved, and their quotient. The server is a process of its own; a call takes it 100 ms.
"""

from __future__ import annotations

import http.client
import json
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from gradspec.text import Variable, ops
from gradspec.text.lm import OpenAIModel

DELAY = "0.1"
#: branches, whether they share a system prompt, calls at once
PROGRAMS = {
    "16 branches, k = 16": (16, False, 16),
    "16 branches, shared prompt, k = 16": (16, True, 16),
    "16 branches, shared prompt, k = 64": (16, True, 64),
    "64 branches, k = 64": (64, False, 64),
}


def program(model, branches, shared):
    """Return the loss of branches joined by a sum."""
    prompts = [Variable(f"prompt {i}", role=f"prompt {i}", requires_grad=True) for i in range(branches)]
    system = Variable("Be brief.", role="system prompt", requires_grad=True)
    head = [{"role": "system", "content": system}] if shared else []
    answers = [ops.chat(model, [*head, {"role": "user", "content": prompt}]) for prompt in prompts]
    return ops.chat(model, ops.sum(answers))


class Floor:
    """Threads with a connection each, which send bodies and read replies."""

    def __init__(self, url: str, k: int) -> None:
        self.at, self.k, self.local = urlsplit(url), k, threading.local()
        self.pool = ThreadPoolExecutor(k)

    def call(self, body: bytes) -> str:
        connection = getattr(self.local, "connection", None)
        if connection is None:
            connection = self.local.connection = http.client.HTTPConnection(self.at.hostname, self.at.port)
        connection.request("POST", f"{self.at.path}/chat/completions", body, {"Content-Type": "application/json"})
        return json.loads(connection.getresponse().read())["choices"][0]["message"]["content"]

    def run(self, waves: list[list[bytes]]) -> float:
        start = time.perf_counter()
        for wave in waves:
            list(self.pool.map(self.call, wave))
        return time.perf_counter() - start


def bodies(url, branches, shared, k):
    """Return the bodies of a pass, in waves: first the call about the loss, then those about the branches."""
    sent: list[bytes] = []

    def spy(messages):
        said = [{"role": m.role, "content": m.content} for m in messages]
        sent.append(json.dumps({"model": "echo", "messages": said}).encode())
        return "0" * 64

    loss = program(spy, branches, shared)
    sent.clear()
    loss.backward(Variable("shorter"))
    return [sent[:1], sent[1:]]


def measured(url: str, rounds: int) -> dict[str, tuple[float, float]]:
    """Return the medians of the pass and of the floor for each program."""
    found = {}
    for name, (branches, shared, k) in PROGRAMS.items():
        model = OpenAIModel("echo", base_url=url)
        floor, waves = Floor(url, k), bodies(url, branches, shared, k)
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(rounds + 1):  # the first opens the connections
            loss = fresh(model, branches, shared)
            start = time.perf_counter()
            loss.backward(Variable("shorter"), max_concurrency=k)
            ours.append(time.perf_counter() - start)
            theirs.append(floor.run(waves))
        floor.pool.shutdown()
        found[name] = statistics.median(ours[1:]), statistics.median(theirs[1:])
    return found


def fresh(model, branches, shared):
    """Return the loss with its forward made by calls at once."""
    from gradspec.text import concurrency

    with concurrency(64):
        return program(model, branches, shared)


def main(rounds: str = "15") -> None:
    """Measure, and print a line for each program."""
    command = [sys.executable, str(Path(__file__).with_name("server.py")), DELAY]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        url = server.stdout.readline().strip()
        for name, (ours, theirs) in measured(url, int(rounds)).items():
            print(f"{name}: {ours:.3f} s, floor {theirs:.3f} s, {ours / theirs:.2f} x", flush=True)
        server.stdin.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
