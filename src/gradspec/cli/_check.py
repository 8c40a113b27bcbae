"""The command `check`: arguments in, report out, exit code by verdicts. Nothing here imports torch before it must."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradspec._registry._laws import did_you_mean, select_laws
from gradspec._registry._registry import installed_specs, resolve_all, select_checks
from gradspec._searches import no_search
from gradspec.cli._kept import Kept
from gradspec.cli._output import (
    Output,
    exit_code,
    exit_zero_option,
    for_people,
    format_option,
    judging_options,
    read_baseline,
)
from gradspec.cli._prints import printed_once
from gradspec.cli._say import say
from gradspec.cli._shared import (
    Unusable,
    block,
    one_line_errors,
    refuse_unwritable,
    run_options,
)
from gradspec.findings import Bar
from gradspec.law import Rank, Scope
from gradspec.profile import load_profile
from gradspec.report import Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradspec._engine._plan import Check
    from gradspec.law import Law
    from gradspec.spec import Spec


@click.command(
    epilog=block(
        "Exit code",
        "0  nothing is wrong in what is asked about (--scope), or what is wrong is of a lesser rank (--fail-on)",
        "1  a law that is asked about is broken, inconclusive or vacuous, or something raised",
        "2  a limit ran out or the spec is at fault, and something is not measured; or the arguments cannot be used",
    )
    + "\n\n"
    + block(
        "Examples",
        "gradspec check gradspec.functions",
        'gradspec check gradspec.functions:GRAD_FACTOR --law vjp --case "factor 0.1"',
        "gradspec check my_specs.py --record record.json          (again: only what has changed)",
        "gradspec check my_specs.py --record record.json --fresh  (all of it)",
        "gradspec check my_specs.py --format text --format github --format junit=junit.xml --html report.html",
        "gradspec check my_specs.py --scope training,compile      (fails on nothing else)",
        "gradspec check my_specs.py --baseline main.json          (fails on what is new)",
        "gradspec check my_specs.py --shard 3/8 --record part-3.json",
    )
)
@click.argument("targets", nargs=-1, metavar="[TARGET...]")
@click.option("--case", metavar="NAME", help="Run only the case of this name.")
@click.option(
    "--shard",
    metavar="N/M",
    help="Run only part N of M, for example one part per machine; `gradspec merge` joins the records.",
)
@judging_options
@format_option
@exit_zero_option
@run_options
@click.option("--prune", is_flag=True, help="Remove from the record what this run does not check.")
def check(
    targets: tuple[str, ...],
    case: str | None,
    shard: str | None,
    scopes: tuple[Scope, ...],
    fail_on: str,
    strict: bool,
    baseline: Path | None,
    html: Path | None,
    formats: tuple[str, ...],
    exit_zero: bool,
    law_names: tuple[str, ...],
    seed: int,
    profile_name: str,
    device: str,
    time_limit: float | None,
    jobs: int | None,
    record: Path | None,
    fresh: bool,
    prune: bool,
    verbose: bool,
) -> None:
    """Check specs against the laws.

    TARGET is a module that holds specs, one spec in it (module:NAME), or a .py file in place of the module. Default:
    the specs of gradspec and of installed packages (entry points `gradspec.specs`).

    With --record, a verdict in the record is reused until a file that the spec imports, or a version, changes. The
    record keeps its other verdicts.
    """
    with one_line_errors():
        refuse_unwritable(record, option="--record")
        bar = Bar(fail_on=Rank(fail_on), strict=strict)
        output = Output.of(formats, html, bar=bar, baseline=read_baseline(baseline))
        profile = load_profile(profile_name, time_limit=time_limit, scopes=scopes, device=device)
        profile = replace(profile, laws=law_names or profile.laws)
        part = _shard(shard)
        kept = Kept(record, fresh=fresh, prune=prune)
        # Whatever the code under test prints must not end up in the report.
        with printed_once():
            with no_search():
                pairs = resolve_all(targets) if targets else installed_specs()
                chosen = select_laws(profile.laws)
            kept.refuse_twins((spec.name, path, spec) for path, spec in pairs)
            how: Any = {"profile": profile, "seed": seed, "jobs": jobs}
            checks = select_checks(pairs, chosen, profile, seed=seed)
            planned = {check.cell for check in checks}
            report = _run(pairs, chosen, checks, kept, case=case, part=part, **how)
        kept.write(report, planned)
        kept.said(report)
    judgement = output.put(report, for_people(verbose=verbose))
    sys.exit(exit_code(judgement, exit_zero=exit_zero))


def _run(
    pairs: list[tuple[str, Spec]],
    chosen: tuple[Law, ...],
    checks: Sequence[Check],
    kept: Kept,
    *,
    case: str | None,
    part: tuple[int, int] | None,
    **how: Any,
) -> Report:
    from gradspec._engine._shard import shard_of
    from gradspec._engine._verify import run_plan
    from gradspec.cli import _screen

    planned = {check.cell for check in checks}
    if case is not None and case not in (known := {check.case for check in checks}):
        have = f"the cases are {', '.join(map(repr, sorted(known)))}"
        raise Unusable(f"no case {case!r}: {did_you_mean(case, known) or have}")
    checks = [check for check in checks if case in (None, check.case)]
    asked = [check.cell for check in checks]
    if part:
        checks = shard_of(checks, *part)
        if not checks:
            say(f"part {part[0]} of {part[1]} is empty: there are {len(asked)} checks", err=True)
    specs, paths = [spec for _, spec in pairs], {spec.name: path for path, spec in pairs}

    def of_all(report: Report) -> Report:
        there = {verdict.cell for verdict in report.verdicts}
        return replace(report, missing=tuple(cell for cell in asked if cell not in there))

    with _screen.progress() as report_progress:
        report = run_plan(
            checks,
            specs,
            chosen,
            paths=paths,
            progress=report_progress,
            known=kept.reports,
            keep=lambda report: kept.keep(of_all(report), len(checks), planned),
            whole=case is None and part is None,
            **how,
        )
    return of_all(report)


def _shard(text: str | None) -> tuple[int, int] | None:
    """Return which part of how many an option asks for.

    Raises:
        Unusable: there is no such part.
    """
    if text is None:
        return None
    number, _, of = text.partition("/")
    if not (number.isdecimal() and of.isdecimal()):
        raise Unusable(f"--shard {text} is not N/M: write --shard 3/8 for the third of eight parts")
    if not 1 <= int(number) <= int(of):
        raise Unusable(f"--shard {text}: there is no part {number} of {of}, they count from 1")
    return int(number), int(of)
