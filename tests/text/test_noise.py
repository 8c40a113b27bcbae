"""A pass that fails says so once."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, gc, threading
from gradspec.text import Variable, ops, backward_async
together = threading.Barrier(LIMIT)
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
except CAUGHT:
    print("caught")
gc.collect()
"""


def failed(way: str, *, limit: int = 16, caught: str = "ConnectionError") -> tuple[str, str]:
    program = PROGRAM.replace("WAY", way).replace("LIMIT", str(limit)).replace("CAUGHT", caught)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout, done.stderr


def test_sixteen_branches_that_fail_together_print_nothing() -> None:
    assert failed("program().backward(Variable('shorter'), max_concurrency=16)") == ("caught\n", "")


def test_nor_on_a_running_loop() -> None:
    way = "asyncio.run(backward_async(program(), Variable('shorter'), max_concurrency=16))"
    assert failed(way) == ("caught\n", "")


@pytest.mark.parametrize("limit", [1, 16])
def test_an_error_that_nobody_catches_is_one_error(limit) -> None:
    way = f"program().backward(Variable('shorter'), max_concurrency={limit})"
    _, said = failed(way, limit=limit, caught="ZeroDivisionError")
    assert said.count("Traceback") == 1
    assert said.endswith("\nConnectionError: gone\n")
    assert "never retrieved" not in said
