"""The command `sample`: what CI measures afresh."""

from __future__ import annotations

import subprocess
import sys
import time

import click

from gradspec.cli._shared import block


@click.command(
    epilog=block(
        "Exit code",
        "0  all that was measured is as the committed summaries say",
        "1  something is not: each cell is named",
    )
)
@click.option("--base", default="HEAD~1", show_default=True, help="The commit that a change is compared with.")
@click.option("--seed", type=int, help="Seed of the draw. Default: made of the commit.")
@click.option("--seconds", default=60.0, show_default=True, help="How long about, with one process.")
def sample(base: str, seed: int | None, seconds: float) -> None:
    """Measure what a change touches and a random part of the committed evidence, and compare.

    That each specimen is caught by its own law is a test already: tests/laws/test_laws.py.
    """
    from gradspec_lab.evidence._changed import ROOT, changed_files
    from gradspec_lab.evidence.sample import sample as run

    if seed is None:
        command = ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"]
        seed = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout, 16)
    try:
        changed = changed_files(base)
    except LookupError as error:
        click.echo(f"{error}: what a change touches is not measured", err=True)
        changed = ()
    click.echo(f"seed {seed}")
    began = time.monotonic()
    wrong = run(seed, seconds=seconds, changed=changed, say=click.echo)
    for line in wrong:
        click.echo(line)
    click.echo(f"{len(wrong)} differ ({time.monotonic() - began:.0f} s)")
    sys.exit(1 if wrong else 0)
