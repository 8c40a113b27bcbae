"""Hold the operators of tests/strangers/operators to the laws, and note what is found, opcheck's answer beside it.

python -m gradspec_lab.strangers.operators --out tests/strangers/operators/record.json

With --only, the other rows of the record stay, and each row that is asked again says when and with what.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from gradspec import verify
from gradspec._record import provenance, read_experiment, update_experiment, write_experiment
from gradspec.findings import findings, rank_words
from gradspec_lab.strangers.operator_specs import OPERATORS, spec_of, subjects

#: What the truth says of opcheck where it found nothing.
SUCCESS = "SUCCESS"
HEAD = {
    "name": "operators of strangers",
    "what": "what the laws find of operators whose authors had not seen them, with the answer of opcheck",
}
STANDS_ON = (
    "src/gradspec_lab/strangers/operators.py",
    *(f"tests/strangers/operators/{name}.py" for name in ("table", "sound", "diseased", "reports")),
)


def row(name: str, truth: dict[str, Any]) -> dict[str, Any]:
    """Return what the laws find of one operator or Function, the most dangerous first."""
    begin = time.monotonic()
    report = verify([spec_of(name)], jobs=1)
    found = [
        {
            "law": one.verdict.law,
            "rank": rank_words(one.rank),
            "message": one.verdict.finding.message,
            "likely": one.verdict.finding.likely,
        }
        for one in findings(report)
    ]
    answers = truth["opcheck"] or {}
    told = {"name": name, "module": subjects()[name]["module"], "defect": subjects()[name]["defect"]}
    print(f"{time.monotonic() - begin:5.1f} s  {name}: {', '.join(f['law'] for f in found)}", flush=True)
    return told | {"findings": found, "opcheck sees": [test for test, said in answers.items() if said != SUCCESS]}


def _into(path: Path, name: str, truth: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    path.write_text(json.dumps(row(name, truth)), encoding="utf-8")


def _renewed(kept: dict[str, Any], made: list[dict[str, Any]], facts: dict[str, Any]) -> dict[str, Any]:
    rows = {row["name"]: row for row in kept["rows"]}
    rows |= {row["name"]: row | {"provenance": provenance(**facts)} for row in made}
    return kept | {"rows": [rows[name] for name in subjects() if name in rows]}


def main() -> None:
    """Write the record."""
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where to write the record")
    parser.add_argument("--only", default="", help="a part of the names that are asked")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    options = parser.parse_args()
    truth = json.loads((OPERATORS / "truth.json").read_text(encoding="utf-8"))
    names = [name for name in subjects() if options.only in name]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        paths = [Path(folder) / f"{number}.json" for number in range(len(names))]

        def one(number: int) -> None:
            name = names[number]
            run = get_context("spawn").Process(target=_into, args=(paths[number], name, truth[name]))
            run.start()
            run.join()

        list(pool.map(one, range(len(names))))
        rows = [
            json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"name": name, "refused": True}
            for name, path in zip(names, paths, strict=True)
        ]
    facts = {"seed": 0, "profile": "quick"}
    if options.only and options.out.exists():
        update_experiment(_renewed(read_experiment(options.out), rows, facts), options.out)
    else:
        write_experiment({**HEAD, "rows": rows}, options.out, **facts)


if __name__ == "__main__":
    main()
