"""The commands: arguments in, report out, exit code by verdicts. Nothing here imports torch before it must."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradspec._registry._registry import (
    did_you_mean,
    installed_specs,
    listed_laws,
    listed_specs,
    resolve_all,
    select_checks,
    select_laws,
)
from gradspec._searches import no_search
from gradspec.cli._kept import Kept, request_of
from gradspec.cli._output import Output, format_option, judging_options, read_baseline
from gradspec.cli._shared import (
    Unusable,
    block,
    one_line_errors,
    refuse_unwritable,
    run_options,
)
from gradspec.law import Rank
from gradspec.profile import load_profile
from gradspec.report import Report, read_record

if TYPE_CHECKING:
    from gradspec.findings import Judgement
    from gradspec.law import Law
    from gradspec.spec import Spec


@click.command(
    epilog=block(
        "Exit code",
        "0  every law holds, or says why it was not checked",
        "1  a law is broken, inconclusive or vacuous, or something raised",
        "2  the arguments cannot be used; nothing was run or written",
    )
    + "\n\n"
    + block(
        "Examples",
        "gradspec check gradspec.functions",
        'gradspec check gradspec.functions:GRAD_FACTOR --law vjp --case "factor 0.1"',
        "gradspec check my_specs.py --record record.json          (again: only what has changed)",
        "gradspec check my_specs.py --record record.json --fresh  (all of it)",
        "gradspec check my_specs.py --format text --format github --format junit=junit.xml --html report.html",
        "gradspec check my_specs.py --baseline main.json          (fails on what is new)",
    )
)
@click.argument("targets", nargs=-1, metavar="[TARGET...]")
@click.option("--case", metavar="NAME", help="Only the case of this name.")
@judging_options
@format_option
@click.option("--exit-zero", is_flag=True, help="Leave the judgement to the reader of the record: broken laws exit 0.")
@run_options
def check(
    targets: tuple[str, ...],
    case: str | None,
    fail_on: str,
    baseline: Path | None,
    html: Path | None,
    formats: tuple[str, ...],
    exit_zero: bool,
    law_names: tuple[str, ...],
    seed: int,
    profile_name: str,
    jobs: int | None,
    record: Path | None,
    fresh: bool,
    verbose: bool,
) -> None:
    """Check specs against the laws.

    TARGET is a module that holds specs, one spec in it (module:NAME), or a .py file in place of the module. Without
    one: the specs of gradspec and of installed packages (entry points `gradspec.specs`).

    With --record, what the record holds already is not measured again, as long as no definition that can change it
    has changed.
    """
    with one_line_errors():
        refuse_unwritable(record, option="--record")
        output = Output.of(formats, html, fail_on=Rank(fail_on), baseline=read_baseline(baseline))
        profile = load_profile(profile_name)
        profile = replace(profile, laws=law_names or profile.laws)
        kept = Kept(record, fresh=fresh, partly=bool(law_names) or case is not None)
        request = request_of(profile, seed, targets=list(targets), case=case)
        report = kept.unchanged(request, profile)
        if report is not None:
            report = replace(report, reused=len(report.verdicts))
        else:
            # Whatever the code under test prints must not end up in the report.
            with contextlib.redirect_stdout(sys.stderr):
                with no_search():
                    pairs = resolve_all(targets) if targets else installed_specs()
                    chosen = select_laws(profile.laws)
                how: Any = {"profile": profile, "seed": seed, "jobs": jobs, "noted": kept.has_path or output.has_json}
                report = _run(pairs, chosen, kept, request, case=case, **how)
            kept.write(report)
        kept.said(report)
    judgement = output.put(report, _text(verbose=verbose))
    sys.exit(1 if judgement.fails and not exit_zero else 0)


@click.command("list", epilog=block("Examples", "gradspec list", "gradspec list my_package.specs"))
@click.argument("targets", nargs=-1, metavar="[TARGET...]")
def list_(targets: tuple[str, ...]) -> None:
    """List the specs that can be checked, and the laws.

    Without a TARGET: those of gradspec and of installed packages (entry points `gradspec.specs`).
    """
    from gradspec.cli import _tables

    with one_line_errors():
        pairs = resolve_all(targets) if targets else listed_specs()
        known = listed_laws()
    console = _tables.console()
    _tables.put(console, _tables.specs(pairs))
    _tables.put(console, _tables.laws(known))


@click.command(epilog=block("Examples", "gradspec explain vjp"))
@click.argument("law")
def explain(law: str) -> None:
    """Say what a law states, why it matters, what breaks it, and the remedy."""
    from gradspec.cli import _tables

    with one_line_errors():
        (found,) = select_laws([law], listed_laws())
    click.echo(_tables.law_page(found), nl=False)


@click.command(
    epilog=block(
        "Examples",
        "gradspec check gradspec.functions --record record.json",
        "gradspec show record.json --verbose",
        "gradspec show record.json --format sarif=gradspec.sarif --baseline main.json",
    )
)
@click.argument("record", type=click.Path(path_type=Path), metavar="RECORD.json")
@judging_options
@format_option
@click.option("--verbose", "-v", is_flag=True, help="Show also why a law was not checked, and all facts of a failure.")
def show(
    record: Path,
    fail_on: str,
    baseline: Path | None,
    html: Path | None,
    formats: tuple[str, ...],
    verbose: bool,
) -> None:
    """Show a saved record as `check` showed it, with the exit code of `check`."""
    with one_line_errors():
        report = read_record(record)
        output = Output.of(formats, html, fail_on=Rank(fail_on), baseline=read_baseline(baseline))
    judgement = output.put(report, _text(verbose=verbose, provenance=True))
    sys.exit(1 if judgement.fails else 0)


def _text(**how: bool) -> Callable[[Judgement], None]:
    """Return what prints a report for people."""

    def put(judgement: Judgement) -> None:
        from gradspec.cli import _tables

        _tables.print_report(judgement, **how)

    return put


def _run(
    pairs: list[tuple[str, Spec]],
    chosen: tuple[Law, ...],
    kept: Kept,
    request: dict[str, Any],
    *,
    case: str | None,
    **how: Any,
) -> Report:
    from gradspec._engine._verify import run_plan
    from gradspec.cli import _tables

    checks = select_checks(pairs, chosen, how["profile"], seed=how["seed"])
    if case is not None and case not in (known := {check.case for check in checks}):
        have = f"the cases are {', '.join(map(repr, sorted(known)))}"
        raise Unusable(f"no case {case!r}: {did_you_mean(case, known) or have}")
    checks = [check for check in checks if case in (None, check.case)]
    specs, paths = [spec for _, spec in pairs], {spec.name: path for path, spec in pairs}
    with _tables.progress() as report_progress:
        return run_plan(
            checks,
            specs,
            chosen,
            paths=paths,
            progress=report_progress,
            known=kept.report,
            request=request if kept.has_path else None,
            keep=lambda report: kept.keep(report, len(checks)),
            whole=case is None,
            **how,
        )
