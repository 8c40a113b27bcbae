"""What runs in a fork is what `subprocess.run` would have run, and nothing of it stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from forked import server

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """\
import os, sys
sys.stderr.write("warned")
print(sys.argv, os.getcwd(), os.environ.get("COLOUR"), __name__, sys.stdin.read())
sys.exit(7)
"""


def forked(*words: object, **how: Any) -> subprocess.CompletedProcess[str]:
    return server("json").run(words, **how)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(SCRIPT, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [("-m", "program", "a", "b"), ("-c", SCRIPT, "a", "b"), ("program.py", "a", "b")],
    ids=lambda words: words[0],
)
def test_words_folder_environment_streams_and_exit_code_are_those_of_a_subprocess(
    folder: Path, words: tuple[str, ...]
) -> None:
    env = {**os.environ, "COLOUR": "red"}
    expected = subprocess.run(
        [sys.executable, *words],
        input="",
        capture_output=True,
        text=True,
        cwd=folder,
        env=env,
        check=False,
    )
    found = forked(*words, cwd=folder, env=env)
    streams = (expected.returncode, expected.stdout, expected.stderr)

    assert (found.returncode, found.stdout, found.stderr) == streams
    assert expected.returncode == 7
    assert "red __main__" in expected.stdout


def test_an_error_is_a_traceback_and_exit_code_1() -> None:
    found = forked("-c", "1 / 0")

    assert found.returncode == 1
    assert found.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_a_signal_is_a_negative_exit_code() -> None:
    assert forked("-c", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)").returncode == -signal.SIGTERM


def test_what_is_registered_for_the_end_runs() -> None:
    assert forked("-c", "import atexit; atexit.register(print, 'the end')").stdout == "the end\n"


def test_nothing_stays_behind() -> None:
    forked("-c", "import os, sys, json; json.marked = sys.marked = 1; os.environ['MARKED'] = '1'; import wave")
    found = forked("-c", "import os, sys, json; print(vars(json) | vars(sys) | os.environ, 'wave' in sys.modules)")

    assert "marked" not in found.stdout.lower()
    assert found.stdout.endswith("False\n")


def test_the_server_has_its_modules_and_no_other() -> None:
    found = forked("-c", "import sys; print('json' in sys.modules, 'torch' in sys.modules, 'pytest' in sys.modules)")

    assert found.stdout == "True False False\n"


def test_many_commands_that_end_at_once_are_all_answered() -> None:
    assert [forked("-c", f"import os; os._exit({code})").returncode for code in range(100)] == list(range(100))


def test_stdout_may_be_a_file(folder: Path) -> None:
    assert forked("-c", "print('here')", stdout=folder / "out").stdout == ""
    assert (folder / "out").read_text(encoding="utf-8") == "here\n"


def test_what_does_not_end_is_killed_and_the_next_command_runs() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        forked("-c", "import signal; signal.pause()", timeout=0.2)

    assert forked("-c", "print('next')").stdout == "next\n"
