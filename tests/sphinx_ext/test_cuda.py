"""What a page says of a CUDA device: not measured without a summary, and with one what it holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from gradspec._record import write
from gradspec.law import Finding, Status
from gradspec_lab._summary import CUDA, summary_text
from sphinx_ext.handmade import Project, copied, report, verdict

PAGE = """# A device

Here: {gradspec:cuda}`cuda.json`.

```{gradspec-cuda} cuda.json
```
"""
FACTS = {
    "date": "2026-01-02 03:04 UTC",
    "commit": "abc123",
    "device": "an abacus",
    "torch": "2.11.0",
    "driver": "580.1",
    "profile": {"compiled_cases": 1, "backend": "inductor"},
}
RATIO = {"of": "ours", "to": "copy", "median": 1.25, "quartiles": [1.2, 1.5]}
PARTS = {
    "waits": [
        {"name": "Scale.apply", "forward": 0, "backward": 2, "where": ["demo.py:7"]},
        {"name": "Broken.apply", "error": "RuntimeError: no"},
    ],
    "benchmarks": {
        "what": "a copy, and not",
        "matmul": "highest",
        "measurements": [
            {"what": "both passes", "rows": 7, "ratios": [RATIO]},
            {"what": "a loss", "error": "OutOfMemoryError: too large"},
        ],
    },
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = copied("test-function", tmp_path)
    (made.source / "index.md").write_text(
        (made.source / "index.md").read_text("utf-8") + "\n```{toctree}\ndevice\n```\n"
    )
    (made.source / "device.md").write_text(PAGE, encoding="utf-8")
    conf = made.source / "conf.py"
    text = conf.read_text(encoding="utf-8").replace('"peers.json"', '"expanded.json"')
    text = text.replace(
        'extensions = ["gradspec.sphinx_ext"', 'extensions = ["gradspec.sphinx_ext", "gradspec_lab.sphinx"'
    )
    conf.write_text(text + '\ngradspec_summaries = ["cuda.json -> expanded.json"]\n', encoding="utf-8")
    return made


def summarise(project: Project) -> None:
    bad = Finding(status=Status.BROKEN, message="it is off")
    verdicts = (verdict("vjp", "factor 2", bad), verdict("formula", "factor 2"))
    found = replace(report(project), provenance=FACTS, verdicts=verdicts)
    write(summary_text(found, CUDA, **PARTS), project.source / "cuda.json")


def test_without_a_summary_the_page_says_not_measured_and_nothing_warns(project: Project) -> None:
    built = project.build()
    assert (built.returncode, built.warnings) == (0, [])
    text = BeautifulSoup(built.html("device"), "html.parser").get_text(" ")
    assert "Here: No CUDA record has been made yet: nothing on this site was measured on a GPU." in text
    assert "○ not measured" in text


def test_a_summary_fills_the_page_and_the_column_of_the_function_and_leaves_with_it(project: Project) -> None:
    project.build()
    summarise(project)
    built = project.build()
    assert (built.returncode, built.warnings) == (0, [])
    soup = BeautifulSoup(built.html("device"), "html.parser")
    text = " ".join(soup.get_text(" ").split())
    assert "were measured on an abacus, torch 2.11.0, on 2026-01-02 at commit abc123." in text
    assert (
        "Verdicts: holds 1, broken 1. The laws that compile ran on 1 of the cases of each spec, with inductor." in text
    )
    assert "Scale.apply demo.py:7 0 2 Broken.apply RuntimeError: no" in text
    assert "ours / copy, median (quartiles) 1.25 (1.2 to 1.5)" in text
    assert "a loss, : OutOfMemoryError" not in text
    assert "a loss: OutOfMemoryError: too large" in text
    head = BeautifulSoup(built.html(), "html.parser").select("table.gradspec-laws tr")[0]
    assert head.find_all("th")[-1].get_text() == "an abacus, torch 2.11.0"
    (project.source / "cuda.json").unlink()
    built = project.build()
    assert (built.returncode, built.warnings) == (0, [])
    assert "No CUDA record has been made yet" in built.html("device")
    assert "an abacus" not in built.html()


def test_an_edited_summary_warns_and_is_not_shown(project: Project) -> None:
    summarise(project)
    path = project.source / "cuda.json"
    path.write_text(path.read_text(encoding="utf-8").replace("an abacus", "a cloud"), encoding="utf-8")
    built = project.build()
    assert any("has been edited since it was measured" in warning for warning in built.warnings)
    assert "a cloud" not in built.html("device")
