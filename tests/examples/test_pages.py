"""What stands on the tutorial pages is run, and what they say of a measurement is what its record holds."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest
import torch

from gradspec._record import read_experiment
from lab.benchmarks.form import noted

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "tutorial").glob("*.md"))
RECORDS = ROOT / "docs" / "records" / "examples"
FENCE = re.compile(r"^```(\S+)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def fences(page: Path, kind: str) -> list[str]:
    return [text for found, text in FENCE.findall(page.read_text(encoding="utf-8")) if found == kind]


def commands() -> list[str]:
    return [line for page in PAGES for block in fences(page, "sh") for line in block.splitlines()]


@pages
def test_every_block_is_of_a_kind_that_is_run_or_rendered(page: Path) -> None:
    kinds = {kind for kind, _ in FENCE.findall(page.read_text(encoding="utf-8"))}
    assert kinds <= {"python", "sh", "{literalinclude}", "{gradspec-curves}", "{toctree}", "{math}"}


@pages
def test_the_python_of_a_page_prints_what_the_page_says(page: Path) -> None:
    text = "\n".join(fences(page, "python"))
    examples = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    assert len(examples.examples) >= text.count(">>>"), "a line of a page is not run"
    assert bool(text) == bool(examples.examples)
    report: list[str] = []
    with torch.random.fork_rng(devices=()):
        failed, _ = doctest.DocTestRunner().run(examples, out=report.append)
    assert failed == 0, "".join(report)


@pytest.mark.parametrize("command", commands())
def test_a_command_of_a_page_runs(run, command: str) -> None:
    python, script, *arguments = shlex.split(command)
    folder, _, name = script.rpartition("/")
    assert (python, folder) == ("python", "docs/examples"), "only the examples are run here"
    done = run(name, *arguments, cold=True)
    assert done.returncode == 0, done.stderr


def test_there_is_a_command_for_each_example() -> None:
    scripts = {path.name for path in (ROOT / "docs" / "examples").glob("[!_]*.py")}
    assert {command.split()[1].rpartition("/")[2] for command in commands()} == scripts


@pages
def test_no_measured_number_is_typed(page: Path) -> None:
    prose = re.sub(r"\{gradspec:number\}`[^`]*`", "", FENCE.sub("", page.read_text(encoding="utf-8")))
    assert re.findall(r"\d[\d.]*\s?(?:%|per cent|seconds|minutes)", prose) == []


@pytest.mark.parametrize("name", ["instance_discrimination", "shake_digits"])
def test_a_short_run_has_the_form_of_the_committed_record(run, tmp_path: Path, name: str) -> None:
    out = tmp_path / "record.json"
    done = run(f"{name}.py", "--epochs", 1, "--seeds", 1, "--out", out)
    assert done.returncode == 0, done.stderr
    new, committed = (read_experiment(path) for path in (out, RECORDS / f"{name}.json"))
    assert noted(new) == noted(committed)
    apart = ("provenance", "sources")
    assert form({k: v for k, v in new.items() if k not in apart}) == form(
        {k: v for k, v in committed.items() if k not in apart}
    )
    assert list(new) == list(committed)


def form(value: object) -> object:
    """Return the keys of a record, and the labels of its lines, without what was measured."""
    if isinstance(value, dict):
        return {key: value[key] if key in ("label", "title", "format", "scale") else form(value[key]) for key in value}
    if isinstance(value, list):
        return [form(item) for item in value if isinstance(item, dict)]
    return type(value).__name__
