"""The command `audit`: a function without a spec, and a few calls."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradspec._registry._laws import select_laws
from gradspec._registry._targets import load_attribute, split
from gradspec.cli._audited import (
    accuracy_option,
    audited,
    checked_cases,
    noise_option,
    reference_options,
    trained_options,
)
from gradspec.cli._kept import Kept
from gradspec.cli._output import Output, exit_code, exit_zero_option, format_option, judging_options, read_baseline
from gradspec.cli._prints import printed_once
from gradspec.cli._say import say
from gradspec.cli._shared import Unusable, block, one_line_errors, refuse_unwritable, run_options, save
from gradspec.findings import Bar
from gradspec.law import Rank, Scope
from gradspec.profile import load_profile

if TYPE_CHECKING:
    from gradspec._audit._found import Audit
    from gradspec.findings import Judgement
    from gradspec.spec import Accuracy


@click.command(
    epilog=block(
        "Exit code",
        "0  nothing is wrong in what is asked about (--scope); a question alone, unless --strict",
        "1  a law that is asked about is broken or inconclusive, or something raised",
        "2  a limit ran out or the spec is at fault, and something is not measured; or the arguments cannot be used",
    )
    + "\n\n"
    + block(
        "Examples",
        "gradspec audit my_package.ops:RoundSTE --case '(randn(2, 3),)'",
        "gradspec audit my_ops.py:Scale --case '(randn(2, 3), 0.5)' --case '(randn(0, 3), 0.5)'",
        "gradspec audit gradspec.functions:GradFactor --case '(randn(4, dtype=float32), f=0.1)' --proposal spec.py",
        "gradspec audit mylib::scale --case '(randn(2, 3), 0.5)'",
        "gradspec audit my_ops.py:RMSNorm --reference my_ops.py:plain_rms_norm --case '(randn(4, 3), randn(3))'",
        "gradspec audit my_ops.py:RoundSTE --surrogate my_ops.py:identity --case '(randn(2, 3),)'",
        "gradspec audit my_ops.py:Conv --sweep --case '(randn(2, 6), randn(2, 4))'",
        "gradspec audit --all my_package.ops",
        "gradspec audit --all my_package.ops --calls kept",
        "gradspec audit --all my_ops.py:mylib::",
    )
)
@click.argument("target", metavar="MODULE:FUNCTION")
@click.option(
    "--all",
    "all_",
    is_flag=True,
    help="Audit every torch.autograd.Function in MODULE, or every operator of NAMESPACE::, with calls guessed from "
    "their signatures and the laws that do not compile; print the most dangerous first.",
)
@click.option(
    "--case",
    "cases",
    multiple=True,
    metavar="CALL",
    help="The arguments of a call: literals, and tensors as randn(2, 3), rand, zeros, ones, full((2, 3), 0.5), "
    "arange(6), randint(0, 9, (4,)), tensor([1.0]), each with dtype=, seed= and requires_grad=; or @FILE, a call that "
    "`gradspec watch` has kept. Repeatable.",
)
@click.option(
    "--calls",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    help="With --all: use the calls that `gradspec watch --save-cases FOLDER` has kept, and guess a call only for a "
    "function without one.",
)
@reference_options
@trained_options
@noise_option
@accuracy_option
@click.option(
    "--sweep",
    is_flag=True,
    help="First try other sizes, values and options, one change at a time; also audit the smallest call that shows a "
    "wrong value or gradient.",
)
@click.option("--sharded", is_flag=True, help="Also check DTensors whose rows of the batch are shared among ranks.")
@click.option("--proposal", type=click.Path(path_type=Path), metavar="PATH", help="Save the proposed spec to a file.")
@judging_options
@format_option
@exit_zero_option
@run_options
def audit(
    target: str,
    all_: bool,
    cases: tuple[str, ...],
    calls: Path | None,
    reference: str | None,
    surrogate: str | None,
    gradient: str | None,
    wrt: tuple[str, ...],
    zero_gradient: tuple[str, ...],
    noise: tuple[str, ...],
    accuracy: Accuracy | None,
    sweep: bool,
    sharded: bool,
    proposal: Path | None,
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
    verbose: bool,
) -> None:
    """Audit a function that has no spec by calling it, and propose a spec.

    FUNCTION is a torch.autograd.Function, its apply, an operator NAMESPACE::NAME of torch.library, or anything that is
    called with tensors. MODULE may be left out if it has the name of the operator's namespace. Its results in eager
    mode are the reference: every transform, every memory layout and a second backward pass must agree with them.
    """
    bar = Bar(fail_on=Rank(fail_on), strict=strict)
    if all_:
        given = (
            cases,
            sweep,
            reference,
            surrogate,
            gradient,
            wrt,
            zero_gradient,
            noise,
            accuracy,
            proposal,
            record,
            formats,
            sharded,
            html,
            baseline,
        )
        if any(given):
            alone = (
                "--case, --sweep, --reference, --surrogate, --gradient, --wrt, --zero-gradient, --noise, --accuracy, "
                "--proposal, --record, --format, --html, --baseline or --sharded"
            )
            raise Unusable(f"--all goes with no {alone}: it makes the calls")
        from gradspec.cli._audit_all import audit_all

        with one_line_errors():
            how = load_profile(profile_name, time_limit=time_limit, scopes=scopes, device=device)
            sys.exit(audit_all(target, law_names, how, bar, seed=seed, jobs=jobs, exit_zero=exit_zero, calls=calls))
    if calls is not None:
        raise Unusable("--calls goes with --all: of one function name a file, --case @FILE")
    if not cases:
        raise Unusable("an audit needs a call: give --case '(randn(2, 3),)', or --all for every Function of a module")
    with one_line_errors():
        refuse_unwritable(record, option="--record")
        refuse_unwritable(proposal, option="--proposal")
        output = Output.of(formats, html, bar=bar, baseline=read_baseline(baseline))
        how = load_profile(profile_name, time_limit=time_limit, scopes=scopes, device=device)
        profile = replace(how, laws=law_names or how.laws)
        kept = Kept(record, fresh=fresh)
        with printed_once():
            if record is not None:
                kept.refuse_twins([(split(target)[1], target, load_attribute(target))])
            found = audited(
                target,
                checked_cases(cases, seed),
                laws=select_laws(profile.laws),
                profile=profile,
                seed=seed,
                jobs=jobs,
                known=kept.reports,
                sharded=sharded,
                reference=reference,
                surrogate=surrogate,
                gradient=gradient,
                wrt=wrt,
                zero_gradient=zero_gradient,
                noise=noise,
                accuracy=accuracy,
                sweep=sweep,
            )
        kept.write(found.report)
        kept.said(found.report)
        if proposal is not None and found.proposal:
            save(found.proposal, proposal, option="--proposal")
    judgement = output.put(found.report, lambda judgement: _print(judgement, found, verbose=verbose, swept=sweep))
    sys.exit(exit_code(judgement, exit_zero=exit_zero))


def _print(judgement: Judgement, found: Audit, *, verbose: bool, swept: bool) -> None:
    from gradspec.cli import _report

    _report.print_report(judgement, verbose=verbose, brief=not verbose)
    if not swept and not judgement.fails:
        say("\nOther sizes, values and options were not tried: `--sweep` does.\n", nl=False)
    say("".join(f"\n{remark}\n" for remark in found.remarks_of_proposal), nl=False)
    if found.proposal:
        say(f"\nA spec to complete and paste:\n\n{found.proposal}", nl=False)
