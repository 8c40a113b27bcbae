"""The command `watch`: a program runs as it would, and every custom gradient that it runs is audited."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradspec._watch import _text
from gradspec.cli._kept import Kept
from gradspec.cli._output import FORMATS, Output, read_baseline, scope_option
from gradspec.cli._say import say
from gradspec.cli._shared import Unusable, block, one_line_errors, refuse_unwritable, save

if TYPE_CHECKING:
    from gradspec._scope import Scope
    from gradspec._watch._row import Program
    from gradspec.report import Report


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog=block(
        "Exit code",
        "0  the program exits with 0; with --fail, no gradient is wrong in what it uses (--scope), either",
        "1  with --fail: the program exits with 0, and a gradient is wrong in what it uses, none that ran could be "
        "audited, or nothing of --only ran",
        "2  the options cannot be used, and nothing was run",
        "127  there is no such program",
    )
    + "\n\n"
    + block(
        "Any other program",
        "exits as it would without the watch, with 1 and 2 too",
    )
    + "\n\n"
    + block(
        "Examples",
        "gradspec watch -- python train.py --epochs 1",
        "gradspec watch -- python -m pytest tests",
        "gradspec watch --only my_package --save-cases calls -- torchrun --nproc-per-node 2 train.py",
        "gradspec watch --fail --report gradients.txt -- python train.py",
        "gradspec watch --scope training,higher -- python train.py",
    ),
)
@click.option(
    "--only", multiple=True, metavar="NAME", help="Ask only about functions of this package or module. Repeatable."
)
@scope_option("Default: training, and what the program uses.")
@click.option(
    "--audit-at",
    type=click.IntRange(1),
    metavar="N",
    help="Audit a function after N calls, while the program runs. Default: audit all at its end, which a program "
    "that is killed does not reach.",
)
@click.option(
    "--save-cases",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Keep the calls as files, which `gradspec audit --case @FILE` reads.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="PATH",
    help="Write the report to a file. Default: stderr, after the program's own output.",
)
@click.option(
    "--fail",
    is_flag=True,
    help="Exit with 1 if the program succeeds, and a gradient is wrong or none that ran could be audited.",
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="RECORD.json",
    help="Report only findings that this record does not have, and fail only for these.",
)
@click.option(
    "--record", type=click.Path(path_type=Path), metavar="PATH", help="Add the reports of the audits to a record."
)
@click.option(
    "--format",
    "formats",
    multiple=True,
    metavar="FORMAT=PATH",
    help=f"Also write the report to PATH as {', '.join(FORMATS)}. Repeatable.",
)
@click.option("--html", type=click.Path(path_type=Path), metavar="PATH", help="Also write the report as an HTML page.")
@click.option("--verbose", "-v", is_flag=True, help="Show all findings in full.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- PROGRAM [ARGUMENT ...]")
def watch(
    only: tuple[str, ...],
    scopes: tuple[Scope, ...],
    audit_at: int | None,
    save_cases: Path | None,
    report: Path | None,
    fail: bool,
    baseline: Path | None,
    record: Path | None,
    formats: tuple[str, ...],
    html: Path | None,
    verbose: bool,
    command: tuple[str, ...],
) -> None:
    """Run a program, and audit every custom gradient that it uses.

    The watch finds each torch.autograd.Function and each operator of torch.library that is not torch's own, in all
    Python processes that the program starts. It then audits each on the calls that the program made, in a separate
    process, for training and for what the program uses: autocast, a second derivative, torch.func, torch.compile;
    --scope names other uses. The program's output, results and exit code do not change.
    """
    if command[0].startswith("-"):
        with one_line_errors():
            raise Unusable(f"there is no option {command[0]!r}: `gradspec watch --help` lists them")
    if not shutil.which(command[0]):
        say(f"Error: there is no program {command[0]!r}", err=True)
        sys.exit(127)
    with one_line_errors(), tempfile.TemporaryDirectory(prefix="gradspec-watch-") as scratch:
        if bare := [word for word in formats if "=" not in word]:
            raise Unusable(f"--format {bare[0]}: stdout is the program's, write --format {bare[0]}=PATH")
        output = Output.of(formats, html, baseline=read_baseline(baseline))
        for path, option in ((record, "--record"), (report, "--report")):
            refuse_unwritable(path, option=option)
        kept = Kept(record, fresh=False)
        if save_cases and save_cases.exists() and any(save_cases.iterdir()):
            raise Unusable(f"--save-cases {save_cases} holds files already: name a folder that is new or empty")
        code = _run(command, Path(scratch), only, scopes, audit_at or 0)
        program = _seen(Path(scratch), only, output.baseline).with_files_in(save_cases)
        judgement = program.judgement
        if judgement is not None:
            kept.write(judgement.report)
            output.write(judgement)
        said = _text.text(program, details=verbose)
        if report is None:
            say(said, err=True)
        else:
            save(f"{said}\n", report, option="--report")
    fails = program.is_wrong or program.is_unjudged or (bool(only) and not program.rows)
    sys.exit(code or int(fail and fails))


def _run(command: tuple[str, ...], folder: Path, only: tuple[str, ...], scopes: tuple[Scope, ...], at: int) -> int:
    """Run the program with the watch in its environment; return its exit code, as a shell has it."""
    from gradspec._watch import _environment

    site = str(Path(_environment.__file__).parent / "_site")
    paths = [site, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ,
        _environment.FOLDER: str(folder),
        _environment.ONLY: ",".join(only),
        _environment.SCOPES: ",".join(scopes),
        _environment.AT: str(at),
        "PYTHONPATH": os.pathsep.join(paths),
    }
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the program; this reports then
    try:
        process = subprocess.Popen(command, env=environment, preexec_fn=lambda: signal.signal(signal.SIGINT, before))
        with _passed_on(process):
            code = process.wait()
    except OSError as error:
        raise Unusable(f"{command[0]} cannot be run: {error.strerror}") from None
    finally:
        signal.signal(signal.SIGINT, before)
    return 128 - code if code < 0 else code


@contextlib.contextmanager
def _passed_on(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """What ends this process ends the program: a scheduler, `timeout` or a closed terminal knows only this one."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    before = {number: held for number, held in before.items() if held is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, lambda number, _: process.send_signal(number))
    try:
        yield
    finally:
        for number, held in before.items():
            signal.signal(number, held)


def _seen(folder: Path, only: tuple[str, ...], baseline: Sequence[Report]) -> Program:
    """Audit what the program could not, and return all that was seen."""
    from gradspec._watch._apart import audit_the_rest
    from gradspec._watch._store import read_watch

    audit_the_rest(folder, lambda name: say(f"gradspec watch: audit of {name}", err=True), only)
    return read_watch(folder, only=only, baseline=baseline[-1] if baseline else None)
