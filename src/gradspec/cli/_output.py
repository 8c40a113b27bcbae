"""In what form a report leaves a command: on stdout, in files, and as a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradspec import render
from gradspec._record import reusable
from gradspec._registry._laws import did_you_mean
from gradspec._registry._targets import with_cwd
from gradspec._scope import ALL, Scope, ScopeError, scopes_of
from gradspec.cli._shared import Unusable, refuse_unwritable, save, say_what_lacks
from gradspec.findings import Bar, Judgement, judge
from gradspec.law import Rank
from gradspec.report import read_records

if TYPE_CHECKING:
    from gradspec.report import Report

#: Beside `text`, which a terminal shapes.
FORMATS: dict[str, Callable[[Judgement], str]] = {
    "json": lambda judgement: judgement.report.to_json(),
    "github": render.github,
    "junit": render.junit,
    "sarif": render.sarif,
    "badge": render.badge,
}
NAMES = ("text", *FORMATS)
#: Formats that may share a stream with others: a log.
_LINES = ("text", "github")

format_option = click.option(
    "--format",
    "formats",
    multiple=True,
    metavar="FORMAT[=PATH]",
    help=f"Format of the report: {', '.join(NAMES)}; to stdout, or to PATH. Repeatable. Default: text, which also goes "
    "to stdout if every format has a PATH.",
)

exit_zero_option = click.option(
    "--exit-zero",
    is_flag=True,
    help="Exit with 0 whatever is found, but still with 2 if a limit ran out, or a spec is at fault.",
)


@dataclass(frozen=True, kw_only=True)
class Output:
    """The requested outputs of a command."""

    formats: tuple[tuple[str, Path | None], ...]
    html: Path | None = None
    bar: Bar = field(default_factory=Bar)
    baseline: Sequence[Report] = ()

    @classmethod
    def of(cls, formats: tuple[str, ...], html: Path | None = None, **how: Any) -> Output:
        """Return what the options say.

        Raises:
            Unusable: there is no such format, two cannot share stdout, or a file cannot be written.
        """
        found = [_read(word) for word in formats]
        on_stdout = [name for name, path in found if path is None]
        if len(on_stdout) > 1 and (alone := [name for name in on_stdout if name not in _LINES]):
            raise Unusable(f"--format {alone[0]} must be alone on stdout: write --format {alone[0]}=PATH")
        for name, path in found:
            refuse_unwritable(path, option=f"--format {name}")
        refuse_unwritable(html, option="--html")
        return cls(formats=(*found, *([] if on_stdout else [("text", None)])), html=html, **how)

    def put(self, report: Report, text: Callable[[Judgement], None]) -> Judgement:
        """Give a report in every form; `text` prints it for people. Return what it means for the run."""
        judgement = judge(report, self.bar, _fitting(self.baseline, report))
        self.write(judgement, text)
        return judgement

    def write(self, judgement: Judgement, text: Callable[[Judgement], None] = lambda _: None) -> None:
        """Give what a run means in every form."""
        with_cwd()  # the source is looked up from there
        for name, path in self.formats:
            if name == "text":
                text(judgement)
            elif path is None:
                click.echo(FORMATS[name](judgement), nl=False)
            else:
                save(FORMATS[name](judgement), path, option=f"--format {name}")
        if self.html is not None:
            save(render.page(judgement), self.html, option="--html")


def exit_code(*judgements: Judgement, exit_zero: bool = False) -> int:
    """Return 2 if a limit, or a fault of a spec, kept a run from saying what was asked; else 1 where it fails."""
    if any(judgement.is_unsaid for judgement in judgements):
        return 2
    return int(any(judgement.fails for judgement in judgements) and not exit_zero)


def for_people(**how: bool) -> Callable[[Judgement], None]:
    """Return the printer of a report on a terminal."""

    def put(judgement: Judgement) -> None:
        from gradspec.cli import _report

        _report.print_report(judgement, **how)

    return put


class _Ranks(click.Choice[str]):
    """A rank; what is none is one line."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return a rank.

        Raises:
            Unusable: it is none.
        """
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            names = list(map(str, self.choices))
            meant = did_you_mean(str(value), names) or f"choose from {', '.join(names)}"
            raise Unusable(f"--fail-on: no rank {str(value)!r}: {meant}") from None


def scope_option(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option `--scope`, whose help ends with what is asked about without it."""
    return click.option(
        "--scope",
        "scopes",
        callback=_scopes,
        metavar="SCOPE[,...]",
        help=f"What to check for: {', '.join([*Scope, ALL])}. Other findings take one line and fail nothing. {default}",
    )


def judging_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which findings make a run fail, and the page."""
    options = (
        scope_option(
            "Default: training, what the spec promises, and silently wrong results under torch.compile and of a rule "
            "for vmap or jvp that an audited Function writes."
        ),
        click.option(
            "--fail-on",
            type=_Ranks([rank.value for rank in Rank]),
            default=Bar.fail_on.value,
            show_default=True,
            help="Exit with 1 for violations of this rank or worse. Checks without a verdict always exit with 1.",
        ),
        click.option(
            "--strict",
            is_flag=True,
            help="Exit with 1 also for a question, and if the calls of an audit show nothing.",
        ),
        click.option(
            "--baseline",
            type=click.Path(path_type=Path),
            metavar="RECORD.json",
            help="Fail only on findings that this record does not have; list new, known and mended findings.",
        ),
        click.option(
            "--html", type=click.Path(path_type=Path), metavar="PATH", help="Also write the report as an HTML page."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _scopes(context: click.Context, parameter: click.Parameter, given: str | None) -> tuple[Scope, ...]:
    try:
        return () if given is None else scopes_of(given)
    except ScopeError as error:
        raise Unusable(f"--scope: {error}") from None


def read_baseline(path: Path | None) -> Sequence[Report]:
    """Return the reports of the record of a baseline, and say what it lacks.

    Raises:
        RecordError: it is not a record.
    """
    reports = () if path is None else read_records(path)
    if path is not None:
        say_what_lacks(path, reports)
    return reports


def _fitting(baseline: Sequence[Report], report: Report) -> Report | None:
    """Return the report of a baseline that is of the environment, profile and seed of another one, or else the last."""
    fitting = (one for one in baseline if reusable(one.provenance, report.provenance))
    return next(fitting, baseline[-1] if baseline else None)


def _read(word: str) -> tuple[str, Path | None]:
    name, given, path = word.partition("=")
    if name not in NAMES:
        close = did_you_mean(name, NAMES)
        raise Unusable(f"no format {name!r}: {close or 'choose from ' + ', '.join(NAMES)}")
    if given and name == "text":
        raise Unusable("--format text goes to stdout: redirect it, or write --format json=PATH")
    if given and not path:
        raise Unusable(f"--format {word} names no file: write --format {name}=PATH, or --format {name} for stdout")
    return name, Path(path) if given else None
