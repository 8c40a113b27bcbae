"""A recorded run that is killed at random moments goes on from its cassette, and pays for nothing twice."""

import json
import random
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

import forked
from text.lm.server import Server, digest

PROGRAM = str(Path(__file__).with_name("taped.py"))
#: What the program imports: it is killed at its work, and not while it starts.
IMPORTED = ("gradspec.text", "gradspec.text.lm", "gradspec.text.ops", "gradspec.text.optim")
KILLS = 100
#: The calls that may be in flight when it is killed: those are paid, and nobody has the reply.
IN_FLIGHT = 8


def reply(body):
    said = digest(body)
    return f"<new>Prompt {said[:8]}.</new>" if "Rewrite the text" in body["messages"][-1]["content"] else said


def run(at, file, timeout=60):
    """Run the program to its end, and return what it says; it is killed when its time is up."""
    done = forked.server(*IMPORTED).run([PROGRAM, at.url, file], timeout=timeout)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_killed_at_100_random_moments_it_ends_as_one_that_was_not(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    forked.server(*IMPORTED).run(["-c", ""])  # it has imported when this has run
    with Server(reply=reply, delay=0.005) as server:
        began = time.monotonic()
        wanted = run(server, whole)
        took = time.monotonic() - began
        once = Counter(json.dumps(body, sort_keys=True) for body in server.paid)
        server.paid.clear()
        draw, killed, since = random.Random(0), 0, 0
        while killed < KILLS:
            try:
                found = run(server, cut, draw.uniform(0.2, 0.8) * took)
            except subprocess.TimeoutExpired:
                killed, since = killed + 1, since + 1
            else:  # it came to its end: begin anew
                assert (found, cut.read_text()) == (wanted, whole.read_text())
                cut.unlink()
                server.paid.clear()
                since = 0
        found = run(server, cut)
        paid = Counter(json.dumps(body, sort_keys=True) for body in server.paid)
    assert (found, cut.read_text()) == (wanted, whole.read_text())
    assert paid.keys() == once.keys()
    assert (paid - once).total() <= IN_FLIGHT * since
