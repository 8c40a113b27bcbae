"""Audit published functions that have no spec, and write the record that a how-to shows.

`nox -s records` installs their packages into a folder of their own and runs this file. Of each audit the report is kept
beside the record's row as far as it says something, so that only the laws that have changed are asked again.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import runpy
import shlex
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import distributions
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from gradspec._record import RecordError, Source, provenance, read, same_environment, to_text, write
from gradspec_lab.audits.audit_table import AUDITED, Audited

KIND = "audits"
#: What each audit imports; the laws that compile, torch's compiler too.
IMPORTED = ("gradspec._audit._audit", "gradspec._registry._registry", "gradspec.cli._audit", "gradspec.cli._tables")
COMPILER = "torch._dynamo"
#: Where the commands of the record expect the packages.
HOME = Path("build/audits/site-packages")
#: What an audit stands on beside the laws.
STANDS_ON = (
    "gradspec._audit._selection:selected",
    "gradspec._audit._eager_spec:eager_spec",
    "gradspec._audit._probe:measure",
    "gradspec._audit._case_syntax:read_case",
    "gradspec.spec._maker:Maker",
    "src/gradspec_lab/audits/audit_record.py:audited_row",
)


def command(audited: Audited, site: Path) -> list[str]:
    """Return the command that audits a function installed under a folder."""
    target = audited.target if ".py:" not in audited.target else str(site / audited.target)
    return ["gradspec", "audit", target, "--case", audited.case]


def installed(audited: Audited, site: Path) -> str:
    """Return the version of the package in a folder.

    Raises:
        LookupError: it is not there, or in another version than the table says.
    """
    found = next((d.version for d in distributions(name=audited.package, path=[str(site)])), None)
    if found != audited.version:
        raise LookupError(f"{site} has {audited.package} {found}, and the table says {audited.version}")
    return found


def audited_row(audited: Audited, site: Path, laws: tuple[str, ...] = ()) -> dict[str, Any]:
    """Audit one function in a process of its own, and return its row; of some laws alone, if they are given.

    The process is forked from this one, which has imported torch.
    """
    version = installed(audited, site)
    with tempfile.TemporaryDirectory() as folder:
        saved, said = Path(folder) / "report.json", Path(folder) / "said"
        words = [*command(audited, site), "--jobs", "1", "--record", str(saved)]
        words += [word for law in laws for word in ("--law", law)]
        run = get_context("fork").Process(target=_run, args=(words, site, said))
        run.start()
        run.join()
        if run.exitcode not in (0, 1) or not saved.exists():
            raise RuntimeError(f"{shlex.join(words)} ended with {run.exitcode}: {said.read_text(encoding='utf-8')}")
        report = json.loads(saved.read_text(encoding="utf-8"))
    kept = ("law", "status", "message", "got", "expected", "likely")
    return {
        "name": audited.name,
        "package": audited.package,
        "version": version,
        "target": audited.target,
        "case": audited.case,
        "command": shlex.join([f"PYTHONPATH={HOME}", *command(audited, HOME)]),
        "verdicts": {verdict["law"]: verdict["status"] for verdict in report["verdicts"]},
        "findings": [
            {key: verdict[key] for key in kept if verdict.get(key)}
            for verdict in report["verdicts"]
            if verdict["status"] in ("broken", "inconclusive", "error")
        ],
    }


def _run(words: list[str], site: Path, said: Path) -> None:
    """Be the process of a command of gradspec that finds a folder's packages first."""
    output = os.open(said, os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.path.insert(0, str(site))
    sys.argv = words
    runpy.run_module(
        "gradspec", run_name="__main__"
    )  # not an import: a row stands on its own laws, not on all there are


def updated(known: Mapping[str, Any], new: Mapping[str, Any], order: list[str]) -> dict[str, Any]:
    """Return a row in which the laws of a newer one stand in the place of the older ones."""
    verdicts = {**known["verdicts"], **new["verdicts"]}
    findings = [f for f in known["findings"] if f["law"] not in new["verdicts"]] + new["findings"]
    return {
        **new,
        "verdicts": {law: verdicts[law] for law in order if law in verdicts},
        "findings": sorted(findings, key=lambda finding: order.index(finding["law"])),
    }


def sources() -> dict[str, Source]:
    """Return what the audits stand on: each law, and what runs it."""
    from gradspec._engine._plan import with_required
    from gradspec._engine._sources import sources as of_laws
    from gradspec.laws import LAWS

    judging = [law for law in LAWS if law.judges("function") and not law.needs_spec]
    found = of_laws((), with_required(judging, LAWS))
    found |= {"audit": Source.of(*STANDS_ON)}
    return found | {"harness function": Source.of("gradspec")}


def moved(known: Mapping[str, Source], today: Mapping[str, Source]) -> tuple[str, ...] | None:
    """Return the laws that an audit must ask again, those that need a spec left out; None: all of them."""
    from gradspec.laws import LAWS

    changed = {name for name, source in today.items() if not source.agrees(known.get(name))}
    if changed & {"audit", "harness function"}:
        return None
    return tuple(
        law.name
        for law in LAWS
        if f"law {law.name}" in today
        and not law.needs_spec
        and changed & {f"law {name}" for name in (law.name, *law.requires)}
    )


def main() -> None:
    """Audit the functions of the table, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site", type=Path, required=True, help="the folder that pip installed the packages into")
    parser.add_argument("--out", type=Path, required=True, help="where to write the record")
    parser.add_argument("--fresh", action="store_true", help="measure all, whatever the record holds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many audits at a time")
    options = parser.parse_args()
    from gradspec.laws import LAWS

    began, today, facts, order = time.monotonic(), sources(), provenance(seed=0), [law.name for law in LAWS]
    known: dict[str, Any] = {}
    laws: tuple[str, ...] | None = None
    if options.out.exists() and not options.fresh:
        try:
            record = read(options.out, KIND, again="all is measured again")
            if same_environment(record["provenance"], facts):
                laws = moved({name: Source.from_dict(s) for name, s in record["sources"].items()}, today)
                known = {row["name"]: row for row in record["audits"]}
        except RecordError as error:
            print(error)

    def row(audited: Audited) -> tuple[dict[str, Any], int]:
        before = known.get(audited.name)
        facts = (audited.version, audited.target, audited.case)
        if laws is None or before is None or (before["version"], before["target"], before["case"]) != facts:
            new = audited_row(audited, options.site.resolve())
            return new, len(new["verdicts"])
        # A law that judges nothing of this function is in no row: it is asked all the same, if it has changed.
        if not laws:
            return dict(before), 0
        new = audited_row(audited, options.site.resolve(), laws)
        return updated(before, new, order), len(new["verdicts"])

    for name in () if laws == () else IMPORTED:
        importlib.import_module(name)
    if laws is None or any(law.cost == "compile" and law.name in laws for law in LAWS):
        importlib.import_module(COMPILER)
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(row, AUDITED))
    for found, asked in rows:
        counts = dict(sorted(Counter(found["verdicts"].values()).items()))
        print(f"{found['name']} {found['version']}: {counts}, {asked} measured", flush=True)
    count, asked = sum(len(found["verdicts"]) for found, _ in rows), sum(asked for _, asked in rows)
    content = {
        "name": "audits",
        "provenance": facts if asked else record["provenance"],
        "sources": {name: source.to_dict() for name, source in today.items()},
        "audits": [found for found, _ in rows],
    }
    write(to_text(KIND, content), options.out)
    print(f"{count - asked} of {count} verdicts are current; {asked} measured in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
