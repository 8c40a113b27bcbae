"""What a command of a page stands for in a test: it is run, or what it names is looked up; all else is refused."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path

import click

from gradspec._registry._registry import resolve
from gradspec.cli import main

ROOT = Path(__file__).parents[2]
#: The package that the pages leave to the reader; a test makes one of that name.
READERS = "yourpackage"


class UnrunError(AssertionError):
    """A command that no test runs, and that names nothing that a test could look up."""


def look_up(command: str) -> None:
    """Refuse a command that is not run, or that names what is not there.

    Raises:
        UnrunError: the message says what to do.
    """
    words = shlex.split(command)
    for pattern, look in KNOWN:
        if re.match(pattern, command):
            look(words)
            return
    raise UnrunError(f"no test knows the command `{command}`: write it as Python, or teach tests/pages/commands.py")


def runs(command: str) -> bool:
    """Whether a test makes the call: it is about the reader's package, which a test can make."""
    return command.startswith("gradspec ") and READERS in command


def _example(words: list[str]) -> None:
    # tests/examples runs those of the tutorials.
    _there(words[1])


def _of_ranks(words: list[str]) -> None:
    # tests/distributed/test_page.py runs them, by as many ranks.
    assert words[1:3] == ["--nproc-per-node", "2"]
    _there(words[3])


def _gradspec(words: list[str]) -> None:
    if READERS in " ".join(words):
        return  # it is run
    command = main.get_command(None, words[1])
    if command is None:
        raise UnrunError(f"gradspec has no command {words[1]!r}")
    try:
        given = command.make_context(words[1], words[2:])
    except click.ClickException as error:
        raise UnrunError(f"`{shlex.join(words)}`: {error.format_message()}") from None
    for target in given.params.get("targets", ()):
        resolve(target)


def _nox(words: list[str]) -> None:
    noxfile = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    if not re.search(rf"^@nox\.session.*\n(?:@nox\..*\n)*def {words[2]}\(session", noxfile, re.MULTILINE):
        raise UnrunError(f"noxfile.py has no session {words[2]!r}")


def _install(words: list[str]) -> None:
    wanted = re.fullmatch(r"(?:gradspec|\.)(?:\[(\w+)\])?", words[-1])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if not wanted or (wanted[1] and wanted[1] not in project["optional-dependencies"]):
        raise UnrunError(f"gradspec has no extra {words[-1]!r}")


def _git(words: list[str]) -> None:
    for word in words[2:]:
        if word.startswith("docs/"):
            _there(str(Path(word).parent))


def _tool(words: list[str]) -> None:
    # tests/lab/test_publish.py runs it.
    _there(words[1])


def _there(path: str) -> None:
    if not (ROOT / path).exists():
        raise UnrunError(f"there is no {path}")


def _laboratory(words: list[str]) -> None:
    from gradspec_lab.__main__ import main as laboratory

    command = laboratory.get_command(None, words[4])
    if command is None:
        raise UnrunError(f"the laboratory has no command {words[4]!r}")
    # tests/lab has tests of each.


KNOWN: tuple[tuple[str, Callable[[list[str]], None]], ...] = (
    (r"python docs/examples/\w+\.py", _example),
    (r"torchrun \S+ \d docs/examples/[\w/]+\.py", _of_ranks),
    (r"gradspec ", _gradspec),
    (r"nox -s \w+$", _nox),
    (r"python src/gradspec_lab/[\w/]+\.py", _tool),
    (r"PYTHONPATH=src python -m gradspec_lab \w+", _laboratory),
    (r"python -m pip install \S+$", _install),
    (r"git (add|commit)", _git),
)
