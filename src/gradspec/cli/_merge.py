"""The command `merge`: records of shards, versions, devices and machines as one."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gradspec.cli._say import say
from gradspec.cli._shared import (
    Unusable,
    block,
    one_line_errors,
    refuse_another_record,
    refuse_unwritable,
    save,
    say_what_lacks,
)
from gradspec.report import KIND, KIND_OF_SEVERAL, read_records, records_to_json


@click.command(
    epilog=block(
        "Exit code",
        "0  the records are joined; `gradspec show` judges what they say",
        "1  they are joined, and cells that were asked for are missing",
        "2  a file is not a record, or the records do not go together; nothing was written",
    )
    + "\n\n"
    + block(
        "Examples",
        "gradspec check my_specs.py --shard 1/2 --record part-1.json   (on one machine)",
        "gradspec check my_specs.py --shard 2/2 --record part-2.json   (on another)",
        "gradspec merge part-1.json part-2.json --record whole.json",
    )
)
@click.argument("records", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RECORD.json...")
@click.option(
    "--record", required=True, type=click.Path(path_type=Path), metavar="PATH", help="Where to write the joined record."
)
def merge(records: tuple[Path, ...], record: Path) -> None:
    """Join records of shards, versions, devices and machines.

    Records of one environment become one, cell by cell. Records of several environments stay separate in one file,
    and `gradspec show` says where they differ. All must have the same sources, and two records of one environment must
    agree on the cells that both have.
    """
    from gradspec._engine._merge import MergeError, labels
    from gradspec._engine._merge import merge as merged_of

    with one_line_errors():
        refuse_unwritable(record, option="--record")
        refuse_another_record(record, KIND, KIND_OF_SEVERAL)
        named = [(str(path), report) for path in records for report in read_records(path)]
        try:
            merged = merged_of(named)
        except MergeError as error:
            raise Unusable(str(error)) from None
        save(records_to_json(merged.reports), record, option="--record")
    for note in merged.notes:
        say(note)
    for label, report in zip(labels(merged.reports), merged.reports, strict=True):
        say(f"{label}: {len(report.verdicts):,} cells")
    say(f"wrote {record}")
    say_what_lacks(record, merged.reports)
    sys.exit(1 if any(report.incomplete for report in merged.reports) else 0)
