"""A pass that fails says so once."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import asyncio, gc, threading
from gradspec.text import Variable, ops, backward_async
together = threading.Barrier(16)
def model(messages):
    if "comment" in messages[-1].content and "<piece>\\nprompt" in messages[-1].content:
        together.wait(timeout=20)
        raise ConnectionError("gone")
    return "fine"
def program():
    prompts = [Variable(f"prompt {i}", requires_grad=True) for i in range(16)]
    return ops.chat(model, [{"role": "user", "content": ops.sum([ops.chat(model, p) for p in prompts])}])
try:
    WAY
except ConnectionError:
    print("caught")
gc.collect()
"""


def failed(way: str) -> tuple[str, str]:
    program = PROGRAM.replace("WAY", way)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout, done.stderr


def test_sixteen_branches_that_fail_together_print_nothing() -> None:
    assert failed("program().backward(Variable('shorter'), max_concurrency=16)") == ("caught\n", "")


def test_nor_on_a_running_loop() -> None:
    way = "asyncio.run(backward_async(program(), Variable('shorter'), max_concurrency=16))"
    assert failed(way) == ("caught\n", "")
