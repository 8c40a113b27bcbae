"""An optimization that is killed at random moments and started again ends as one that was not, and pays once."""

import json
import random
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

import forked
from text.lm.server import Server, digest

PROGRAM = str(Path(__file__).with_name("tune.py"))
#: What the program imports: it is killed at its work, and not while it starts.
IMPORTED = ("gradspec.text", "gradspec.text.lm", "gradspec.text.ops", "gradspec.text.optim")
KILLS = 25


def reply(body):
    said = digest(body)
    return f"<new>Prompt {said[:8]}.</new>" if "Rewrite the text" in body["messages"][-1]["content"] else said


def run(at, folder, timeout=60):
    """Run the program to its end, and return what it says; it is killed when its time is up."""
    done = forked.server(*IMPORTED).run([PROGRAM, at.url, folder], timeout=timeout)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_killed_at_25_random_moments_and_resumed_with_the_same_result(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir()
    cut.mkdir()
    forked.server(*IMPORTED).run(["-c", ""])  # it has imported when this has run
    with Server(reply=reply, delay=0.005) as server:
        began = time.monotonic()
        wanted = run(server, whole)
        took = time.monotonic() - began
        once = len(server.requests)
        assert json.loads(wanted)["calls"] >= once > 50
        server.requests.clear()
        server.paid.clear()
        draw, killed, since = random.Random(0), 0, 0
        while killed < KILLS:
            try:
                found = run(server, cut, draw.uniform(0.3, 1.0) * took)
            except subprocess.TimeoutExpired:
                killed, since = killed + 1, since + 1
            else:  # it came to its end: begin anew
                assert found == wanted
                for file in cut.iterdir():
                    file.unlink()
                server.requests.clear()
                server.paid.clear()
                since = 0
        found = run(server, cut)
        again = Counter(json.dumps(body, sort_keys=True) for body in server.paid)
    assert found == wanted
    assert sum(again.values()) - len(again) <= 8 * since  # what was in flight when it was killed, and no more
    assert len(again) == once


def test_the_program_has_thirty_lines():
    lines = Path(PROGRAM).read_text(encoding="utf-8").splitlines()
    code = [line for line in lines[lines.index("import sys") :] if line.strip()]
    assert len(code) <= 30
