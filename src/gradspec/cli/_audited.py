"""An audit as a command asks for it: what the words name, and the command that runs a law again."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import click

from gradspec._registry._laws import did_you_mean
from gradspec._registry._targets import load_attribute, split
from gradspec.cli._shared import Unusable
from gradspec.findings import scope_of

if TYPE_CHECKING:
    from gradspec._audit._found import Audit
    from gradspec.law import Law, Verdict
    from gradspec.profile import Profile
    from gradspec.report import Report
    from gradspec.spec import Accuracy


def reference_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what a function should compute."""
    gradient = "What backward should return, if that is not a derivative: f(inputs, output, cotangent)."
    command = click.option("--gradient", metavar="MODULE:FUNCTION", help=gradient)(command)
    surrogate = "A function whose derivative backward should apply, if it is not the derivative of forward."
    command = click.option("--surrogate", metavar="MODULE:FUNCTION", help=surrogate)(command)
    reference = "A function in plain torch with the right value and, by its derivative, the right gradient."
    return click.option("--reference", metavar="MODULE:FUNCTION", help=reference)(command)


def trained_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which arguments are trained, and which get no gradient on purpose."""
    zero = "An argument whose gradient is None or zero on purpose. Repeatable."
    command = click.option("--zero-gradient", multiple=True, metavar="NAME", help=zero)(command)
    wrt = "An argument that is trained, like one with requires_grad=True in --case. Repeatable."
    return click.option("--wrt", multiple=True, metavar="NAME", help=wrt)(command)


def noise_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that says which arguments are noise."""
    noise = "An argument that is noise and gets no gradient. Noise drawn inside needs no name. Repeatable."
    return click.option("--noise", multiple=True, metavar="NAME", help=noise)(command)


def accuracy_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that says how accurate results are."""
    accuracy = (
        "How accurate results are, if more than rounding makes them differ: rtol=1e-8 of a solver, store=bfloat16 or "
        "accumulate=bfloat16 of a kernel."
    )
    how: Any = {"metavar": "NAME=VALUE[,...]", "help": accuracy, "callback": _accuracy}
    return click.option("--accuracy", **how)(command)


def _accuracy(context: click.Context, parameter: click.Parameter, given: str | None) -> Accuracy | None:
    if given is None:
        return None
    from gradspec.spec import Accuracy

    said: dict[str, Any] = {}
    names = [one.name for one in fields(Accuracy)]
    for word in given.split(","):
        name, equals, value = (part.strip() for part in word.partition("="))
        if not equals:
            raise Unusable(f"--accuracy: {word!r} is no NAME=VALUE")
        if name in said:
            raise Unusable(f"--accuracy: {name} is there twice")
        if name not in names:
            meant = did_you_mean(name, names) or f"choose from {', '.join(names)}"
            raise Unusable(f"--accuracy: no {name!r}: {meant}")
        said[name] = _dtype(name, value) if name in ("accumulate", "store") else _number(name, value)
    try:
        return Accuracy(**said)
    except ValueError as error:
        raise Unusable(f"--accuracy: {str(error).removeprefix('Accuracy: ')}") from None


def _dtype(name: str, value: str) -> Any:
    import torch

    dtype = getattr(torch, value.removeprefix("torch."), None)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise Unusable(f"--accuracy: {name} is {value!r}, expected a floating-point dtype, such as bfloat16")
    return dtype


def _number(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise Unusable(f"--accuracy: {name} is {value!r}, expected a number, such as 1e-10") from None


def checked_cases(texts: tuple[str, ...], seed: int) -> list[str]:
    """Return the calls as they are written, after a look at each.

    Raises:
        Unusable: one cannot be read, or two are the same.
    """
    from gradspec._audit._case_syntax import RecipeError, read_case

    try:
        names = {read_case(text, seed=seed).name for text in texts}
    except RecipeError as error:
        raise Unusable(str(error)) from None
    if len(names) < len(texts):
        raise Unusable("two cases are the same: leave one out")
    return list(texts)


def audited(
    target: str,
    cases: list[str],
    *,
    laws: tuple[Law, ...],
    profile: Profile,
    seed: int,
    jobs: int | None,
    known: Sequence[Report] = (),
    sharded: bool = False,
    reference: str | None = None,
    surrogate: str | None = None,
    gradient: str | None = None,
    wrt: tuple[str, ...] = (),
    zero_gradient: tuple[str, ...] = (),
    noise: tuple[str, ...] = (),
    accuracy: Accuracy | None = None,
    sweep: bool = False,
) -> Audit:
    """Return the audit of a target, with the commands that run one law again.

    Raises:
        Unusable: it cannot be audited.
    """
    from gradspec._audit import _audit, _placed
    from gradspec._engine._refusals import check_profile
    from gradspec.cli import _screen
    from gradspec.spec._sheet import accuracy_sheet

    function, laws = load_attribute(target), tuple(_placed.without_spec(laws)) if sharded else laws
    given = {"reference": reference, "surrogate": surrogate, "gradient": gradient}
    silent = [law.name for law in laws if law.needs_spec and law.name in profile.laws and not any(given.values())]
    if silent:
        raise Unusable(
            f"the law {silent[0]!r} needs a spec, and an audit has none: leave it out, write the spec, or give "
            "--reference"
        )
    references = {role: load_attribute(path) for role, path in given.items() if path}
    if sweep:
        click.echo("trying the calls with other sizes, values and options", err=True)
    with _screen.progress() as report_progress:
        try:
            check_profile(profile)
            found = _audit.audit(
                _there(function, profile.device),
                cases,
                name=split(target)[1],
                path=target,
                laws=laws,
                profile=profile,
                seed=seed,
                jobs=jobs,
                progress=report_progress,
                known=known,
                sharded=sharded,
                **references,
                reference_paths=[path or "" for path in given.values()],
                wrt=wrt,
                zero_gradient=zero_gradient,
                noise=noise,
                accuracy=accuracy,
                sweep=sweep,
            )
        except (TypeError, ValueError) as error:
            raise Unusable(" ".join(str(error).split())) from None
    said = [(f"--{role}", path) for role, path in given.items() if path]
    said += [*(("--wrt", name) for name in wrt), *(("--zero-gradient", name) for name in zero_gradient)]
    said += [("--noise", name) for name in noise]
    if accuracy is not None:
        said.append(("--accuracy", ",".join(f"{name}={value}" for name, value in accuracy_sheet(accuracy).items())))
    calls = tuple(dict.fromkeys(v.case for v in found.report.verdicts))
    options = {law: profile.options(scope_of(law, found.report.laws)) for law in found.report.laws}
    verdicts = tuple(
        replace(v, rerun=_again(target, v, calls, options[v.law], seed, said)) for v in found.report.verdicts
    )
    return replace(found, report=replace(found.report, verdicts=verdicts))


def _there(function: Any, device: str) -> Any:
    """Return a function; a module of the CPU on the device of the calls."""
    import torch

    return function.to(device) if isinstance(function, torch.nn.Module) and device != "cpu" else function


def _again(
    target: str,
    verdict: Verdict,
    calls: Sequence[str],
    options: Sequence[str],
    seed: int,
    said: Sequence[tuple[str, str]],
) -> str:
    """Return the command that runs one law again, or the whole audit if no law is named."""
    from gradspec._audit._found import calls_that_show

    shown = calls_that_show(verdict, calls)
    words = ["gradspec", "audit", target, *(word for call in shown for word in ("--case", call))]
    words += [word for pair in said for word in pair]
    if verdict.law != "primal" or "--reference" in words:
        words += ["--law", verdict.law, *["--sharded"] * (verdict.law == "sharded")]
    return shlex.join([*words, "--seed", str(seed), *options])
