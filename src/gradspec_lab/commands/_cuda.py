"""The command `measure cuda`: everything that a CUDA device can say of our own functions, in one call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from gradspec.cli._shared import block, one_line_errors

RECORDS = Path("docs/records")


@click.command(
    epilog=block(
        "Examples",
        "python -m gradspec_lab measure cuda --commit $(git rev-parse --short=12 HEAD)",
        "python -m gradspec_lab measure cuda --device cpu --target gradspec.functions:GRAD_FACTOR --out tried",
    )
)
@click.option("--device", default="cuda", show_default=True, help="Where: `cpu` tries the command without a GPU.")
@click.option("--out", type=click.Path(path_type=Path), default=RECORDS, help="The folder; docs/records unless told.")
@click.option("--laws-only", is_flag=True, help="Leave out the benchmarks and the waits.")
@click.option("--benchmarks-only", is_flag=True, help="Leave out the laws.")
@click.option("--target", "targets", multiple=True, metavar="TARGET", help="Specs to check; all of ours unless told.")
@click.option("--law", "laws", multiple=True, metavar="NAME", help="Run only this law.")
@click.option("--backend", default="inductor", show_default=True, help="Of the laws that compile.")
@click.option("--compiled-cases", default=1, show_default=True, help="On how many cases of a spec these laws run.")
@click.option("--jobs", type=click.IntRange(1), help="Processes on the device; half of the processors unless told.")
@click.option("--seconds", default=330.0, show_default=True, help="After which no further check of a law is begun.")
@click.option("--seed", default=0, show_default=True, help="Of all random numbers.")
@click.option("--failures", type=click.Path(path_type=Path), help="Also write each failure whole, as JSON, to PATH.")
@click.option("--commit", default="", help="The commit of the tree, on a machine without its git folder.")
def cuda(
    device: str,
    out: Path,
    laws_only: bool,
    benchmarks_only: bool,
    targets: tuple[str, ...],
    laws: tuple[str, ...],
    backend: str,
    compiled_cases: int,
    jobs: int | None,
    seconds: float,
    seed: int,
    failures: Path | None,
    commit: str,
) -> None:
    """Measure laws, benchmarks and waits on a CUDA device, and write OUT/cuda.json as the parts finish.

    The laws run on every function, network and operator of ours, in several processes on the one device; a process that
    dies is the verdict of its check.
    """
    from gradspec_lab.cuda._asked import Asked
    from gradspec_lab.cuda.record import measure

    if laws_only and benchmarks_only:
        raise click.UsageError("--laws-only and --benchmarks-only leave nothing to measure: give one of them")
    how = {"device": device, "backend": backend, "compiled_cases": compiled_cases, "seed": seed, "laws": laws}
    asked = replace(Asked(**how), **({"targets": targets} if targets else {}))  # type: ignore[arg-type]
    beside = () if laws_only else ("waits", "benchmarks")
    with one_line_errors():
        _refuse_no_device(device)
        measure(
            asked,
            out,
            parts=(*beside, *(() if benchmarks_only else ("laws",))),
            jobs=jobs,
            seconds=seconds,
            commit=commit,
            failures=failures,
            say=lambda line: click.echo(line, err=True),
        )


def _refuse_no_device(device: str) -> None:
    import torch

    if device.startswith("cuda") and not torch.cuda.is_available():
        raise click.UsageError(f"--device {device}: torch finds no CUDA device here; `--device cpu` tries the command")
