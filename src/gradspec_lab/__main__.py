"""`python -m gradspec_lab`: the commands of the laboratory."""

from __future__ import annotations

import click

from gradspec.cli._group import Commands


@click.group(
    cls=Commands,
    homes={
        "selftest": "gradspec_lab.commands._selftest:selftest",
        "measure": "gradspec_lab.commands._measure:measure",
        "sample": "gradspec_lab.commands._sample:sample",
        "house": "gradspec_lab.commands._house:house",
        "campaign": "gradspec_lab.commands._campaign:campaign",
    },
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
def main() -> None:
    """Measure gradspec itself."""


if __name__ == "__main__":
    main(prog_name="python -m gradspec_lab")
