"""Measure everything on a device, and write the summary as the parts finish: what a time limit ends is there so far."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gradspec._engine._plan import with_required
from gradspec._engine._vacuous import settled
from gradspec._engine._verify import blank
from gradspec._record import write
from gradspec.law import Verdict, verdict_to_dict
from gradspec.laws import LAWS
from gradspec.report import Report
from gradspec_lab._summary import CUDA, summary_text
from gradspec_lab.cuda._asked import Asked
from gradspec_lab.cuda._crew import run, streamed

NAME = "cuda.json"
#: How many seconds lie between two writings of what the laws say so far.
OFTEN = 10.0
#: How many seconds the parts beside the laws may take.
WAITS, BENCHMARKS, PROBE = 60.0, 120.0, 120.0
#: What tells whether the compiler works: Triton calls a C compiler, and reads the headers of Python.
_PROBE = "import sys, torch; torch.compile(lambda x: (2 * x + 1).sin())(torch.ones(64, device=sys.argv[1]))"
_COPIED = "each tensor that has to be read or written moved once, by a copy on the device"
WHAT = (
    f"ours / copy: {_COPIED}; for a bank or a weight, a copy of that. ours / torch: the same in plain operations of "
    "torch. All ways of a measurement take turns in one process; peak bytes are those held at once beside the arguments"
)


@dataclass
class Found:
    """What was measured so far, and where it is written."""

    path: Path
    report: Report
    #: Where what failed is written whole, beside the summary, which cuts messages.
    failures: Path | None = None
    parts: dict[str, Any] = field(default_factory=dict)
    written: float = 0.0

    def save(self, *, often: bool = False) -> None:
        """Write the summary; with `often`, only if the last time is some seconds ago."""
        if often and time.monotonic() - self.written < OFTEN:
            return
        write(summary_text(self.report, CUDA, **self.parts), self.path)
        if self.failures:
            failed = [verdict_to_dict(verdict) for verdict in self.report.verdicts if verdict.finding.is_failure]
            write(json.dumps(failed, indent=1), self.failures)
        self.written = time.monotonic()


def measure(
    asked: Asked,
    folder: Path,
    *,
    parts: tuple[str, ...] = ("waits", "benchmarks", "laws"),
    jobs: int | None = None,
    seconds: float = 330.0,
    commit: str = "",
    failures: Path | None = None,
    say: Callable[[str], None] = print,
) -> Path:
    """Measure the parts, and return the path of the summary.

    Args:
        asked: what of the laws.
        folder: where the summary is written.
        parts: which parts.
        jobs: how many processes run laws: half as many as there are processors, unless told.
        seconds: after which no further check of a law is begun.
        commit: of the tree, where no git can tell.
        failures: where to write each failure whole.
        say: called with a line for each step.
    """
    begin = time.monotonic()

    def tell(line: str) -> None:
        say(f"{time.monotonic() - begin:5.0f} s  {line}")

    cores = len(os.sched_getaffinity(0))
    jobs = jobs or max(1, cores // 2)
    probe = _probing(asked.device) if "laws" in parts and asked.backend == "inductor" else None
    specs = [spec for _, spec in asked.specs]
    report = blank(specs, LAWS, asked.profile, seed=asked.seed)
    facts = {**report.provenance, **_machine(asked.device), "processes": jobs}
    facts["commit"] = commit or facts.get("commit") or "unknown"
    found = Found(folder / NAME, replace(report, provenance=facts), failures)
    found.save()
    tell(f"{facts['device']}, torch {facts['torch']}; {found.path}")
    if "waits" in parts:
        found.parts["waits"] = rows = _streamed("gradspec_lab.cuda.waits", asked.device, WAITS, found)
        tell(f"waits: {len(rows)} calls")
    if "benchmarks" in parts:
        module = "gradspec_lab.cuda.benchmarks"
        head = {"what": WHAT, "matmul": _matmul()}
        found.parts["benchmarks"] = {**head, "measurements": []}
        rows = _streamed(module, asked.device, BENCHMARKS, found, lambda row: tell(f"benchmark: {_line(row)}"))
        tell(f"benchmarks: {len(rows)} measurements")
    if "laws" in parts:
        if probe is not None and (why := _refusal(probe)):
            asked = replace(asked, backend="aot_eager")
            tell(f"inductor does not compile here, aot_eager is taken: {why}")
            facts["inductor"] = why
        _laws(asked, found, jobs=jobs, threads=max(1, cores // jobs), seconds=seconds, tell=tell)
    found.save()
    tell(f"wrote {found.path}: {found.path.stat().st_size:,} bytes")
    return found.path


def _laws(asked: Asked, found: Found, *, jobs: int, threads: int, seconds: float, tell: Callable[[str], None]) -> None:
    begin, checks, told = time.monotonic(), asked.checks(), -1
    report = replace(found.report, laws={law.name: law.sheet for law in with_required(LAWS, LAWS)})
    facts = {**report.provenance, "profile": {**report.provenance["profile"], "backend": asked.backend}}

    def keep(verdicts: Mapping[int, Verdict], planned: int) -> None:
        nonlocal told
        found.report = replace(report, provenance=facts, verdicts=tuple(verdicts[n] for n in sorted(verdicts)))
        found.save(often=True)
        if (tenth := 10 * len(verdicts) // planned) > told:
            told = tenth
            failed = sum(verdict.finding.is_failure for verdict in verdicts.values())
            tell(f"laws: {len(verdicts):,} of {planned:,} checks, {failed} failed")

    lacks = run(asked, checks, jobs=jobs, threads=threads, seconds=seconds, found=keep)
    facts["laws_seconds"] = round(time.monotonic() - begin)
    if lacks:
        facts["lacks"] = lacks
        tell(f"laws: {lacks}")
    verdicts = found.report.verdicts if lacks else settled(found.report.verdicts)
    found.report = replace(found.report, provenance=facts, verdicts=verdicts)
    for verdict in found.report.verdicts:
        if verdict.finding.is_failure:
            said = f"{verdict.spec} · {verdict.law} · {verdict.case}"
            tell(f"{verdict.status.value}: {said}: {verdict.finding.message[:200]}")


def _streamed(
    module: str, device: str, seconds: float, found: Found, tell: Callable[[Mapping[str, Any]], None] | None = None
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    part = module.rpartition(".")[2]
    for item in streamed(module, device, seconds=seconds):
        row = {"error": item} if isinstance(item, str) else item
        rows.append(row)
        held = found.parts.get(part)
        found.parts[part] = {**held, "measurements": rows} if isinstance(held, dict) else rows
        found.save()
        if tell:
            tell(row)
    return rows


def _line(row: Mapping[str, Any]) -> str:
    of = row.get("shape") or row.get("rows")
    ratios = ", ".join(f"{one['of']} / {one['to']} {one['median']:.2f}" for one in row.get("ratios", ()))
    return f"{row.get('what', '')} {of} {row.get('dtype', '')}: {ratios or row.get('error')}"


def _machine(device: str) -> dict[str, Any]:
    """Return what a reader needs of the device beside its name."""
    import torch

    if not device.startswith("cuda"):
        return {"processors": os.cpu_count()}
    asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = "unknown"
    if shutil.which(asked[0]):
        done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=30)
        driver = (done.stdout.splitlines() or ["unknown"])[0].strip()
    found = torch.cuda.get_device_properties(0)
    return {
        "cuda": str(torch.version.cuda),
        "driver": driver,
        "capability": f"{found.major}.{found.minor}",
        "device_bytes": found.total_memory,
        "processors": os.cpu_count(),
    }


def _matmul() -> str:
    import torch

    return torch.get_float32_matmul_precision()


def _probing(device: str) -> subprocess.Popen[str]:
    """Begin to compile for the device, in a process of its own, while other parts run."""
    return subprocess.Popen([sys.executable, "-c", _PROBE, device], stderr=subprocess.PIPE, text=True)


def _refusal(probe: subprocess.Popen[str]) -> str:
    """Return why the compiler does not work here, in a line; nothing if it does."""
    try:
        _, said = probe.communicate(timeout=PROBE)
    except subprocess.TimeoutExpired:
        probe.kill()
        return f"no answer within {PROBE:.0f} s"
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line or "error:" in line]
    return "" if probe.returncode == 0 else ((errors or lines or ["it died"])[-1])[:200]
