"""Measure a random part of the committed records again, and fail where anything differs.

`nox -s resample` takes 2 % of the cells that are current. A record that is right gives the same findings again.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradspec._engine._vacuous import unsettled
from gradspec.report import Report, read_record
from gradspec_lab.evidence.records import PEERS, RECORDS, ROOT
from gradspec_lab.selftest._record import read_matrix
from gradspec_lab.selftest._run import selftest


def drawn(rows: Sequence[Any], percent: float, rng: random.Random) -> list[Any]:
    """Return so many percent of the rows, at least one."""
    return rng.sample(list(rows), max(1, round(len(rows) * percent / 100)))


def of_verdicts(name: str, kept: Report, again: Report) -> Iterator[str]:
    """Yield a line for each verdict that another measurement gives another finding."""
    known = {(v["spec"], v["law"], v["case"]): v for v in plain(kept)}
    for new in plain(again):
        cell = (new["spec"], new["law"], new["case"])
        if cell not in known:
            yield f"{name}: {' · '.join(cell)} is not in the record"
        elif new != known[cell]:
            fields = [key for key in new if new[key] != known[cell].get(key)]
            was, now = ({key: one.get(key) for key in fields} for one in (known[cell], new))
            yield f"{name}: {' · '.join(cell)} was {was}, is {now}"


def plain(report: Report) -> list[dict[str, Any]]:
    """Return the verdicts as their checks gave them, but for the command that runs each again.

    Whether one of them is vacuous the other cases of its spec say, of which only some were drawn.
    """
    alone = replace(report, verdicts=tuple(map(unsettled, report.verdicts)))
    verdicts: list[dict[str, Any]] = json.loads(alone.to_json())["verdicts"]
    return [{key: value for key, value in verdict.items() if key != "rerun"} for verdict in verdicts]


def of_peers(site: Path, percent: float, rng: random.Random) -> Iterator[str]:
    """Yield what differs of the published implementations."""
    from gradspec_lab.peers.record import measured

    kept = read_record(ROOT / RECORDS / "peers.json")
    cells = drawn([(v.spec, v.law, v.case) for v in kept.verdicts], percent, rng)
    print(f"peers: {len(cells)} of {len(kept.verdicts)} cells", flush=True)
    again = measured(site, None, only=set(cells))
    # The laws that these require are measured with them, and were not drawn.
    drawn_alone = tuple(v for v in again.verdicts if (v.spec, v.law, v.case) in cells)
    if len(drawn_alone) != len(cells):
        yield f"peers: {len(cells) - len(drawn_alone)} of the cells are not there any more"
    yield from of_verdicts("peers", kept, replace(again, verdicts=drawn_alone))


def of_kills(percent: float, rng: random.Random) -> Iterator[str]:
    """Yield what differs of the kill matrix."""
    kept = read_matrix(ROOT / RECORDS / "kill_matrix.json")
    subjects = {subject.name: subject for subject in drawn(kept.subjects, percent, rng)}
    print(f"kills: {len(subjects)} of {len(kept.subjects)} subjects", flush=True)
    again = selftest(list(subjects), exactly=True, stock=True)
    for new in again.subjects:
        if new != subjects[new.name]:
            yield f"kills: {new.name} was {subjects[new.name]}, is {new}"


def main() -> None:
    """Draw, measure, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--percent", type=float, default=2.0, help="how much of each record; 2 unless told")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32, help="of the draw; another each time")
    parser.add_argument("--site", type=Path, default=ROOT / PEERS, help="where the published packages are")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    rng = random.Random(options.seed)
    wrong = [*of_peers(options.site, options.percent, rng), *of_kills(options.percent, rng)]
    for line in wrong:
        print(line)
    print(f"{len(wrong)} differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
