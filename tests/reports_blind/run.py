"""Asks an audit of the functions here: `python run.py pairs|sound [name ...] [--out FILE]`; a line for each.

What an audit said the first time, before anything was mended because of it, is kept in first_run.json.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from gradspec import audit
from gradspec.findings import judge

HERE = Path(__file__).parent


def _loaded(path: Path) -> ModuleType:
    name = f"{path.parent.name}_{path.stem}".replace("-", "_")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _subject(path: Path, row: dict[str, Any], name: str) -> Any:
    home = _loaded(path)
    if row["kind"] == "operator":
        return name if "::" in name else getattr(home, name)
    found = getattr(home, name)
    if row["kind"] != "module":
        return found
    torch.manual_seed(0)
    return found(*eval(row.get("construct", "()"), {"torch": torch}))


def jobs(sort: str, wanted: list[str]) -> Iterator[tuple[str, Path, dict[str, Any], str]]:
    """Yield the audits of the pairs, or of the sound functions: label, file, row of the table, name in the file."""
    if sort == "pairs":
        for row in tomllib.loads((HERE / "pairs.toml").read_text(encoding="utf-8"))["pair"]:
            for role in ("name", "mended"):
                if not wanted or row["folder"] in wanted or row["folder"][:2] in wanted:
                    yield f"{row['folder']} {role}", HERE / row["folder"] / "ops.py", row, row[role]
    else:
        for row in tomllib.loads((HERE / "sound.toml").read_text(encoding="utf-8"))["sound"]:
            if not wanted or row["name"] in wanted:
                yield f"{row['name']} {row['call']}", HERE / "sound.py", row, row["name"]


def _said(path: Path, row: dict[str, Any], name: str) -> dict[str, Any]:
    """Return what an audit says: whether it fails, how many questions it asks, its findings, and all that it prints."""
    found = audit(_subject(path, row, name), [row["call"]])
    judgement = judge(found.report)
    findings = [
        {
            "law": one.found.verdict.law,
            "fails": one.fails,
            "asked": one.is_asked,
            "question": one.is_question,
            "message": one.found.verdict.finding.message,
            "likely": one.found.verdict.finding.likely,
        }
        for one in judgement.findings
    ]
    questions = sum(one["question"] and one["asked"] for one in findings)
    return {"fails": judgement.fails, "questions": questions, "findings": findings, "text": str(found)}


def asked(job: tuple[str, Path, dict[str, Any], str]) -> dict[str, Any]:
    """Return what is said in a process of its own, which the function may end."""
    label, path, row, name = job
    with tempfile.NamedTemporaryFile("r") as answer:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                torch.set_num_threads(1)
                with Path(os.devnull).open("w") as nowhere:
                    os.dup2(nowhere.fileno(), 1)
                    os.dup2(nowhere.fileno(), 2)
                try:
                    said = _said(path, row, name)
                except Exception as error:
                    said = {"error": f"{type(error).__name__}: {error}"}
                Path(answer.name).write_text(json.dumps(said), encoding="utf-8")
                code = 0
            finally:
                os._exit(code)
        os.waitpid(pid, 0)
        text = answer.read()
    said = json.loads(text) if text else {"error": "the process died"}
    verdict = said.get("error") or ("fails" if said["fails"] else f"passes, {said['questions']} questions")
    named = ""
    if "message" in row and label.endswith(" name") and "text" in said:
        first = next((f for f in said["findings"] if f["fails"] or f["question"]), None)
        told = "" if first is None else f"{first['message']} {first['likely']}"
        is_first, is_said = (re.search(row["message"], text) for text in (told, said["text"]))
        named = "; said first" if is_first else "; said" if is_said else "; not said"
    print(f"{label}: {verdict}{named}", flush=True)
    return {"label": label, **said}


def main() -> None:
    sort, *wanted = sys.argv[1:]
    out = None
    if "--out" in wanted:
        at = wanted.index("--out")
        out = Path(wanted[at + 1])
        del wanted[at : at + 2]
    with ThreadPoolExecutor(int(os.environ.get("AT_ONCE", "2"))) as pool:
        answers = list(pool.map(asked, jobs(sort, wanted)))
    if out is not None:
        out.write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
