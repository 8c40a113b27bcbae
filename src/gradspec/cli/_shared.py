"""Shared parts of the commands: the options of a run, one-line errors, and output to a screen or a file."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradspec._one_line import for_log, visible
from gradspec._record import RecordError, followed, is_device, opened, write
from gradspec._registry._laws import LawError
from gradspec._registry._targets import TargetError
from gradspec.cli._say import say
from gradspec.profile import DAY, Profile, ProfileError, available

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gradspec.report import Report


class Unusable(click.ClickException):
    """Arguments that cannot be used: one line, and nothing was run or written."""

    exit_code = 2

    def format_message(self) -> str:
        return for_log(visible(self.message))


class Interrupted(click.ClickException):
    """The user stopped the run: one line."""

    exit_code = 130  # as a shell counts a process that SIGINT ended: 1 would say that a law is broken


def block(heading: str, *lines: str) -> str:
    # The escape keeps click from filling the lines into a paragraph.
    return "\n".join((f"\b\n{heading}:", *(f"  {line}" for line in lines)))


jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Worker processes, of one thread each. Default: one per CPU, fewer for short runs; 1 on CUDA and outside "
    "Linux.",
)


seed_option = click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(0, 2**32 - 1),
    help="Seed for drawing tensors and directions.",
)


time_limit_option = click.option(
    "--time-limit",
    type=click.FloatRange(0, DAY, min_open=True),
    metavar="SECONDS",
    help="CPU time limit of one check, over all its processes. A check that needs more is not measured, and the exit "
    f"code is 2. Default: that of the profile, {Profile.time_limit:g}.",
)


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every command that runs laws."""
    options = (
        click.option("--law", "law_names", multiple=True, metavar="NAME", help="Run only this law; repeatable."),
        seed_option,
        click.option(
            "--profile",
            "profile_name",
            default="quick",
            show_default=True,
            metavar="NAME|FILE.toml",
            help=f"Which laws to run, and how hard: {', '.join(available())}, or a TOML file.",
        ),
        click.option(
            "--device",
            default="",
            metavar="DEVICE",
            help="Where the tensors of the cases are: cpu, cuda, cuda:1. Default: that of the profile, cpu.",
        ),
        time_limit_option,
        jobs_option,
        click.option(
            "--record",
            type=click.Path(path_type=Path),
            metavar="PATH",
            help="Save the report to a record; measure only what the record does not hold yet.",
        ),
        click.option("--fresh", is_flag=True, help="Measure everything again, even if the record holds it."),
        click.option(
            "--verbose", "-v", is_flag=True, help="Also show why a law was not checked, and all facts of a failure."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def refuse_unwritable(path: Path | None, *, option: str) -> None:
    """Refuse, before anything runs, a path where no file can be written afterwards: a run may take long."""
    if path is None:
        return
    try:
        if path.is_dir():
            raise Unusable(f"{option} {path} is a folder: give the path of a file")
        if is_device(path):
            # It stays open until the command ends: the reader of a pipe would take a close for the end of the record.
            click.get_current_context().call_on_close(partial(os.close, opened(path)))
            return
        nearest = next(parent for parent in followed(path).absolute().parents if parent.exists())
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise _unwritable(path, option, error) from None


def refuse_another_record(path: Path, *kinds: str) -> None:
    """Refuse to replace a file that is not a record, or a record of something else, which may have taken hours.

    Raises:
        Unusable: it is there, and is not a record of one of these kinds.
    """
    if is_device(path):
        return
    try:
        with path.open("rb") as file:
            beginning = file.read(200).decode(errors="replace").strip()
    except OSError:
        return  # there is none, or it cannot be read: then it is refused where it is written
    kind = re.match(r'{\s*"schema": *\d+,\s*"kind": *"([^"]*)"', beginning)
    if kind and kind[1] not in kinds:
        raise Unusable(f"--record {path} is a record of kind {kind[1]!r}, and would be replaced: give another path")
    if beginning and not (beginning.startswith("{") and '"schema"' in beginning):
        raise Unusable(f"--record {path} is not a record of gradspec, and would be replaced: give another path")


def say_what_lacks(path: Path, reports: Iterable[Report]) -> None:
    """Say on stderr what a record lacks of what was asked for, a line for each of its reports."""
    for report in reports:
        if report.incomplete:
            say(f"{path}: {report.incomplete}", err=True)


def save(text: str, path: Path, *, option: str) -> None:
    """Write a file, all or nothing."""
    try:
        write(text, path)
    except OSError as error:
        raise _unwritable(path, option, error) from None
    except UnicodeEncodeError as error:
        why = f"the report contains text that cannot be encoded as UTF-8 ({error})"
        raise Unusable(f"{option} {path} cannot be written: {why}") from None


def _unwritable(path: Path, option: str, error: OSError) -> Unusable:
    if error.errno == errno.ENXIO:
        return Unusable(f"{option} {path} is a pipe that nobody reads, or a socket: give the path of a file")
    return Unusable(f"{option} {path} cannot be written ({error.strerror}): give another path")


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the children end too
    try:
        yield
    except (LawError, ProfileError, RecordError, TargetError) as error:
        raise Unusable(" ".join(str(error).split())) from None
    except KeyboardInterrupt:
        raise Interrupted("interrupted: the run was not finished, and nothing was written") from None
    finally:
        signal.signal(signal.SIGTERM, before)
