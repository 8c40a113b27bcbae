"""A mini-project, a record made by hand, and a real build of both, in a process of its own.

The process is forked from one that has imported Sphinx; `test_cold_build.py` builds each project in a new one too.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from forked import server
from gradspec._record import Source, to_text
from gradspec.law import Finding, Status, Verdict
from gradspec.report import Report, write_record

ROOTS = Path(__file__).parent / "roots"
#: What a build imports in any case; torch is not among it.
IMPORTED = ("warm_sphinx",)
#: The mini-projects whose own modules import torch.
OF_TORCH = {"test-legacy", "test-replicas"}
SURROUNDINGS = {"PYTHONWARNINGS": "ignore", "NO_COLOR": "1"}


@dataclass(frozen=True)
class Built:
    returncode: int
    warnings: list[str]
    folder: Path

    def html(self, page: str = "index") -> str:
        return (self.folder / f"{page}.html").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Project:
    """A copy of a mini-project that a test may change."""

    source: Path
    #: What the process has imported that is forked for a build.
    imported: tuple[str, ...] = IMPORTED
    record: Path = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "record", self.source / "record.json")

    def build(self, *options: str, cold: bool = False) -> Built:
        """Build as a user does, with warnings as errors; a second call is incremental.

        Args:
            options: of `sphinx-build`.
            cold: start a Python for it, as a user does; it is forked otherwise.
        """
        out = self.source.parent / "html"
        words = ["-m", "sphinx", "-q", "-W", "-n", *options, "-d", f"{out}.doctrees", str(self.source), str(out)]
        path = [str(self.source), *filter(None, [os.environ.get("PYTHONPATH")])]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(path), **SURROUNDINGS}
        if cold:
            command = [sys.executable, *words]
            done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120, check=False)
        else:
            done = server(*self.imported, **SURROUNDINGS).run(words, env=env)
        return Built(done.returncode, [line for line in done.stderr.splitlines() if line.strip()], out)

    def write(self, report: Report) -> None:
        write_record(report, self.record)

    def doctree(self, page: str) -> Any:
        return pickle.loads((self.source.parent / "html.doctrees" / f"{page}.doctree").read_bytes())


def copied(root: str, folder: Path) -> Project:
    """Return a copy of a mini-project, its experiments sealed; a record in which all holds if it is `test-function`."""
    imported = (*IMPORTED, "torch") if root in OF_TORCH else IMPORTED
    made = Project(shutil.copytree(ROOTS / root, folder / "source"), imported)
    for path in made.source.rglob("*.json"):
        resealed(path)
    if root == "test-function":
        made.write(report(made))
    return made


def with_the_laboratory(project: Project) -> Project:
    """Add the extension of the laboratory to a mini-project, and return it."""
    conf = project.source / "conf.py"
    text = conf.read_text(encoding="utf-8")
    conf.write_text(text.replace('"gradspec.sphinx_ext"', '"gradspec.sphinx_ext", "gradspec_lab.sphinx"'), "utf-8")
    return project


def resealed(path: Path, edit: Callable[[Any], object] = lambda data: None) -> None:
    """Edit a record, and write it with the checksum of what it holds then: as if that had been measured."""
    data = json.loads(path.read_text(encoding="utf-8"))
    edit(data)
    kind = data.pop("kind")
    path.write_text(to_text(kind, {k: v for k, v in data.items() if k not in ("schema", "checksum")}), encoding="utf-8")


def edited(path: Path, edit: Callable[[Any], object]) -> None:
    """Edit a record by hand: its checksum stays."""
    data = json.loads(path.read_text(encoding="utf-8"))
    edit(data)
    path.write_text(json.dumps(data), encoding="utf-8")


def source_of(file: Path) -> Source:
    """Return the source of what a file defines as it is now."""
    return Source.of(str(file))


def older(source: Source) -> Source:
    """Return a source of the same roots, when they were others."""
    return replace(source, key="another")


def report(project: Project) -> Report:
    """Return the record of a run in which everything holds."""
    source = source_of(project.source / "demo.py")
    verdicts = [
        verdict("vjp", "factor 2"),
        verdict("vjp", "empty input", Finding(status=Status.NOT_APPLICABLE, message="nothing to differentiate")),
        verdict("formula", "factor 2"),
        verdict(
            "wrong_call",
            "factor is text",
            Finding(
                status=Status.HOLDS,
                details={"call": "Scale.apply(1.0, 'a')", "error": "TypeError", "message": "f is a str"},
            ),
        ),
        verdict(
            "examples",
            "demo.Scale",
            Finding(
                status=Status.HOLDS,
                details={"examples": [{"source": "Scale.apply(2.0, 3.0)\n", "want": "2.0\n", "got": "2.0\n"}]},
            ),
        ),
    ]
    return Report(
        provenance={"date": "2026-01-02", "torch": "2.13.0", "python": "3.11", "device": "cpu", "seed": 7},
        sheets={"scale": SHEET},
        laws={name: LAW | {"family": family, "over": OVER.get(name, "cases")} for name, family in FAMILIES.items()},
        sources={"spec scale": source},
        verdicts=tuple(verdicts),
    )


def verdict(law: str, case: str, finding: Finding | None = None, spec: str = "scale") -> Verdict:
    return Verdict(
        spec=spec, law=law, case=case, finding=finding or Finding(status=Status.HOLDS), rerun=f"gradspec check {law}"
    )


def normal(tree: str) -> str:
    """Return a doctree without where the page stands, and without the marks that only one of the two parsers sets."""
    for mark in ('source="', 'myst_version="'):
        while mark in tree:
            start = tree.index(mark)
            tree = tree[:start] + tree[tree.index('"', start + len(mark)) + 1 :]
    return "\n".join(line.rstrip(" >") for line in tree.splitlines())


def breaking(made: Report, law: str = "vjp", message: str = "off by a sign") -> Report:
    """Return the report with one broken law."""
    bad = verdict(law, "factor 2", Finding(status=Status.BROKEN, message=message))
    kept = tuple(v for v in made.verdicts if (v.law, v.case) != (law, "factor 2"))
    return replace(made, verdicts=(*kept, bad))


FAMILIES = {"formula": "values", "examples": "values", "vjp": "derivative", "wrong_call": "protocol"}

OVER = {"examples": "documents", "wrong_call": "misuses"}

LAW: dict[str, Any] = {
    "statement": r"\bar{x} = Ds(x)^{\top}\,\bar{y}",
    "doc": "Backward applies the `surrogate`.\n\nRemedy: write it\nfor the surrogate.",
    "cost": "ms",
    "over": "cases",
    "requires": [],
}

SHEET: dict[str, Any] = {
    "path": "demo:SCALE",
    "version": 3,
    "summary": "Scales the gradient that flows back through it.",
    "documented": ["demo.Scale", "demo.scale"],
    "is_class": True,
    "signature": {
        "parameters": [
            {"name": "x", "annotation": "Tensor", "default": None},
            {"name": "f", "annotation": "Factor", "default": "1.0"},
        ],
        "returns": "Tensor",
    },
    "arguments": [
        {"name": "x", "type": "Tensor", "shape": "any", "dtype": "floating", "gradient": True, "text": "What passes."},
        {"name": "f", "type": "float | Tensor", "shape": "", "dtype": "", "gradient": False, "text": "The factor."},
    ],
    "wrt": ["x"],
    "supports": {"vmap": True, "export": False},
    "effects": {"view_of": "x"},
    "tex": {
        "primal": "y = x",
        "surrogate": r"\tilde{y} = f x",
        "backward": r"\bar{x} = f \bar{y}",
        "forward_mode": r"\dot{y} = f \dot{x}",
    },
    "references": [{"text": "A paper, 2015.", "url": "https://example.org/paper"}],
    "differences": [
        {"peer": "pub.Scale", "published": "Refuses vmap.", "ours": "Allows it.", "law": "vjp", "case": "factor 2"}
    ],
}
