"""`gradspec events`: what a run asked, from its file, whole or while it grows."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from gradspec.cli import _events
from gradspec.text import JsonLines, Variable, watch
from gradspec.text.lm import Cache, Client, Completion, Retry, Usage
from gradspec.text.ops import chat


@pytest.fixture
def run(tmp_path):
    """Return a function that runs a program whose events go to a file, and that file."""
    path = tmp_path / "run.jsonl"
    fails = [TimeoutError()]

    def model(messages):
        if fails:
            raise fails.pop()
        return Completion(text="ok", usage=Usage(prompt_tokens=1000, completion_tokens=500))

    client = Client(model, name="m", cache=Cache(":memory:"), retry=Retry(first_delay=0.0))

    def program():
        x = Variable("a", role="x", requires_grad=True)
        with watch(JsonLines(path)):
            chat(client, x)
            chat(client, x).backward(Variable("shorter"))

    return program, path


def row(output):
    return next(line for line in output.splitlines() if " m " in line).split()


def test_a_row_for_each_model_with_money(gradspec, run):
    program, path = run
    program()
    done = gradspec("events", str(path), "--price", "m=1,2")
    assert done.exit_code == 0, done.output
    assert "1 backward steps, 1 passes" in done.output
    assert [word for word in row(done.output) if word not in "│┃"][1:7] == ["3", "1", "1", "1", "2000", "1000"]
    assert "0.0040" in row(done.output)
    assert "money" not in gradspec("events", str(path)).output


def test_a_line_that_is_being_written_is_left_for_later(tmp_path):
    path = tmp_path / "run.jsonl"
    line = json.dumps({"event": "commit", "time": 0, "attributes": {}})
    path.write_text(f"{line}\n{line[:9]}")
    summary = _events.Summary()
    with path.open() as opened:
        assert _events.read(opened, summary) == 1
        with path.open("a") as more:
            more.write(f"{line[9:]}\n")
        assert _events.read(opened, summary) == 1
    assert summary.passes == 2


@pytest.mark.parametrize("text", ["no JSON", "[1]", '{"event": "call"}', '{"event": "call", "attributes": 3}'])
def test_a_file_of_something_else_is_refused_in_one_line(gradspec, tmp_path, text):
    path = tmp_path / "other.txt"
    path.write_text(f"{text}\n")
    done = gradspec("events", str(path))
    assert done.exit_code == 2
    assert "is not a file of events" in done.output
    assert "Traceback" not in done.output
    assert gradspec("events", str(tmp_path / "missing")).exit_code == 2


def test_a_file_that_is_no_text_is_refused_in_one_line(gradspec, tmp_path):
    path = tmp_path / "other.sqlite3"
    path.write_bytes(b"SQLite format 3\0\x10\0\xff\xfe\n")
    done = gradspec("events", str(path))
    assert (done.exit_code, "is not a file of events" in done.output) == (2, True)


def test_a_price_that_cannot_be_read_is_refused(gradspec, run):
    program, path = run
    program()
    done = gradspec("events", str(path), "--price", "m=cheap")
    assert (done.exit_code, "a price is MODEL=IN,OUT" in done.output) == (2, True)


@pytest.mark.slow
def test_a_file_that_grows_is_followed_until_ctrl_c(run):
    program, path = run
    path.touch()
    command = [sys.executable, "-m", "gradspec", "events", str(path), "--follow"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            time.sleep(3)
            program()
            time.sleep(1)
            process.terminate()  # as Ctrl-C, which a run in the background may be told to ignore
            output, errors = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, errors) == (0, "")
    assert "1 backward steps, 1 passes" in output
