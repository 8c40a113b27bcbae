"""Audit the published functions as a user does, and hold the findings to the truth, measured without the engine.

    python -m gradspec_lab.audits.compare --site FOLDER --out FILE [--check]

FOLDER is where pip put the packages of `truth_table.py`. Each audit is the command `gradspec audit`, in a process of
its own, and so is the `gradspec check` of what it proposes.

- A *silent defect* is a question of the truth whose answer is that something is wrong and nothing says so. It is found
  if a law of that question fails, other than by an error that it calls a refusal, or if a remark says it. What is meant
  so (`DELIBERATE` in `truth_table.py`) is no defect.
- A finding ranked as silently wrong, or as refused, is *false* if the truth measured something else.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Container
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from gradspec._record import RecordError, read_experiment, write_experiment
from gradspec_lab.audits.audit_record import _run as run_command
from gradspec_lab.audits.audit_record import command
from gradspec_lab.audits.audit_table import Audited
from gradspec_lab.audits.truth import OUT as TRUTH
from gradspec_lab.audits.truth_answers import QUESTIONS, Answer, Question, answers
from gradspec_lab.audits.truth_table import PUBLISHED

HEAD = {"name": "comparison", "what": "what gradspec audit finds of published functions, held to what is true of them"}
COMMAND = (
    "python -m gradspec_lab.audits.compare --site build/audits/truths"
    " --out tests/lab/audits/published/results.json --check"
)
#: What each process needs; imported once, before it is forked.
SAID = Path("build/audits/said.json")
IMPORTED = ("torch._dynamo", "gradspec._audit._audit", "gradspec._registry._registry", "gradspec.cli._audit")


def audit(audited: Audited, site: Path) -> dict[str, Any]:
    """Return what `gradspec audit` found, said and proposed."""
    with tempfile.TemporaryDirectory() as folder:
        saved, spec, said = (Path(folder) / name for name in ("report.json", "proposed.py", "said"))
        words = [*command(audited, site), "--jobs", "1", "--record", str(saved), "--proposal", str(spec)]
        code = _ended(words, site, said)
        text = said.read_text(encoding="utf-8", errors="replace")
        if not saved.exists():
            return {"exit": code, "said": text[-400:], "verdicts": [], "remarks": "", "proposal": ""}
        return {
            "exit": code,
            "said": "",
            "verdicts": json.loads(saved.read_text(encoding="utf-8"))["verdicts"],
            "remarks": text.split("A spec to complete and paste:")[0],
            # None is proposed of some functions, and the audit says why.
            "proposal": spec.read_text(encoding="utf-8") if spec.exists() else "",
        }


def check(proposal: str, audited: Audited, site: Path) -> dict[str, Any]:
    """Return what `gradspec check` says of a proposed spec; that of a file is found from the folder of the file."""
    file, is_file, _ = audited.target.partition(".py:")
    site = (site / file).parent if is_file else site
    with tempfile.TemporaryDirectory() as folder:
        spec, saved, said = (Path(folder) / name for name in ("proposed.py", "report.json", "said"))
        spec.write_text(proposal, encoding="utf-8")
        code = _ended(["gradspec", "check", str(spec), "--jobs", "1", "--record", str(saved)], site, said)
        verdicts = json.loads(saved.read_text(encoding="utf-8"))["verdicts"] if saved.exists() else []
        return {
            "exit": code,
            "failed": sorted({v["law"] for v in verdicts if v["status"] in FAILURES}),
            "said": "" if saved.exists() else said.read_text(encoding="utf-8", errors="replace")[-300:],
        }


FAILURES = ("broken", "error", "inconclusive", "vacuous")


def _ended(words: list[str], site: Path, said: Path) -> int | None:
    run = get_context("fork").Process(target=run_command, args=(words, site, said))
    run.start()
    run.join()
    return run.exitcode


def judged(truth: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Return, for one function, the silent defects found and missed, and the findings that the truth denies."""
    true = answers(truth)
    failed = {v["law"]: v for v in found["verdicts"] if v["status"] in FAILURES}
    defects: dict[str, str] = {}
    for question, answer in true.items():
        if answer.silent and not answer.deliberate:
            said = {law for law, verdict in failed.items() if verdict.get("rank") != "refused"}
            defects[question] = _found_by(QUESTIONS[question], said, found["remarks"])
    false, unjudged = {}, {}
    for law, verdict in failed.items():
        known = [a for question, a in true.items() if law in QUESTIONS[question].laws]
        if verdict["status"] == "broken" and verdict.get("rank") in ("wrong", "refused") and not verdict.get("follows"):
            if not any(not a.text.startswith("not measured") for a in known):
                unjudged[law] = f"{verdict['rank']}: {verdict['message'][:160]}"
            elif not any(_agrees(verdict["rank"], a) for a in known):
                measured = "; ".join(a.text for a in known)
                false[law] = f"{verdict['rank']}: {verdict['message'][:160]} | measured: {measured}"
    return {
        "name": truth["name"],
        "exit": found["exit"],
        "said": found.get("said", ""),
        "defects": defects,
        "false": false,
        "unjudged": unjudged,
        "findings": {law: f"{v['status']} {v.get('rank', '')}".strip() for law, v in failed.items()},
        "proposal": found.get("checked", {}),
    }


def _found_by(question: Question, failed: Container[str], remarks: str) -> str:
    """Return the law whose failure says it, or the remark that does, or "missed"."""
    for law in question.laws:
        if law in failed:
            return f"law {law}"
        if re.search(rf"silently gives another result[^.]*\b{law}\b", remarks):
            return f"remark: silently another result, {law}"
    remark = re.search(question.remark, remarks) if question.remark else None
    return f"remark: {remark.group(0)}" if remark else "missed"


def _agrees(rank: str, answer: Answer) -> bool:
    return answer.silent if rank == "wrong" else answer.refused


def shares(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of all functions."""
    defects = [(q, how) for row in rows for q, how in row["defects"].items()]
    found = [q for q, how in defects if how != "missed"]
    kinds = Counter(q for q, _ in defects)
    return {
        "functions": len(rows),
        "silent defects": len(defects),
        "found": len(found),
        "share found": round(len(found) / max(1, len(defects)), 4),
        "by question": {q: f"{Counter(found)[q]} of {n}" for q, n in sorted(kinds.items())},
        "false findings of the first two ranks": sum(len(row["false"]) for row in rows),
        "findings of the first two ranks without a truth": sum(len(row["unjudged"]) for row in rows),
        "findings of the first two ranks": sum(
            status in ("broken wrong", "broken refused") for row in rows for status in row["findings"].values()
        ),
        "audits without a report": sum(row["exit"] not in (0, 1) for row in rows),
        "proposals checked": sum(bool(row["proposal"]) for row in rows),
        # It imports, and fails in nothing that the audit has not found.
        "proposals that pass their own check": sum(
            bool(row["proposal"])
            and not row["proposal"]["said"]
            and set(row["proposal"]["failed"]) <= set(row["findings"])
            for row in rows
        ),
    }


def read_results(path: Path) -> dict[str, Any]:
    """Return what a comparison holds.

    Raises:
        RecordError: it cannot be read, was edited, or its figures are not those of its rows.
    """
    results = read_experiment(path)
    if results["figures"] != shares(results["functions"]):
        raise RecordError(f"{path}: its figures are not those of its rows: {COMMAND}")
    return results


def main() -> None:
    """Audit the functions of the table, compare, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", type=Path, required=True, help="the folder that pip installed the packages into")
    parser.add_argument("--out", type=Path, required=True, help="where to write the results")
    parser.add_argument("--said", type=Path, default=SAID, help="where to keep what the audits said")
    parser.add_argument("--only", action="append", help="audit this function; of the others, what is kept stays")
    parser.add_argument("--keep", action="store_true", help="audit only what is not kept yet")
    parser.add_argument("--check", action="store_true", help="check the proposals too")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many audits at a time")
    options = parser.parse_args()
    truths = {row["name"]: row for row in read_experiment(TRUTH)["functions"]}
    partly = bool(options.only or options.keep)
    known = json.loads(options.said.read_text(encoding="utf-8")) if partly and options.said.exists() else {}
    options.said.parent.mkdir(parents=True, exist_ok=True)
    began, site, lock = time.monotonic(), options.site.resolve(), threading.Lock()
    sys.path.append(str(site))  # for a file that imports its own package; a spec of it is found from its folder
    for name in IMPORTED:
        __import__(name)

    def one(audited: Audited) -> None:
        name, found = audited.name, known.get(audited.name)
        if options.only and name not in options.only:
            return
        if found is None or not options.keep:
            found = audit(audited, site)
        if options.check and found["proposal"] and "checked" not in found:
            found["checked"] = check(found["proposal"], audited, site)
        with lock:
            known[name] = found
            options.said.write_text(json.dumps(known), encoding="utf-8")
        print(f"{name}: exit {found['exit']}, {time.monotonic() - began:.0f} s", flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, PUBLISHED))
    if silent := {name: found["said"].strip() for name, found in known.items() if not found["verdicts"]}:
        lines = [f"{name}: {said}" for name, said in silent.items()]
        sys.exit("\n".join([f"{len(silent)} audits gave no report, and nothing is compared:", *lines]))
    # Of one whose audit is not kept here either, the record stays as it is.
    is_kept = options.only and options.out.exists()
    before = {row["name"]: row for row in read_results(options.out)["functions"]} if is_kept else {}
    now = {name: judged(truths[name], found) for name, found in known.items() if name in truths}
    rows = [(now if a.name in now else before)[a.name] for a in PUBLISHED if a.name in now or a.name in before]
    results: dict[str, Any] = {**HEAD, "figures": shares(rows), "functions": rows}
    asked = {"asked": options.only or "what was not kept"} if partly else {}
    write_experiment(results, options.out, command=COMMAND, **asked)
    print(json.dumps(results["figures"], indent=1))


if __name__ == "__main__":
    main()
