"""The how-to pages are true: their Python runs."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from forked import python

HOW_TO = Path(__file__).parents[1] / "docs" / "how-to"


def test_the_python_of_the_page_on_modules_runs():
    (block,) = re.findall(r"```python\n(.*?)```", (HOW_TO / "add-a-module.md").read_text(encoding="utf-8"), re.DOTALL)
    names = {"__name__": "how_to"}
    exec(compile(block, "add-a-module.md", "exec"), names)

    assert names["HEAD"].kind == "module"


@pytest.mark.slow
def test_the_python_of_the_page_on_audits_runs():
    text = (HOW_TO / "audit-a-function.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 2
    exec(compile("".join(blocks), "audit-a-function.md", "exec"), {"__name__": "how_to"})


@pytest.mark.parametrize(
    "words",
    [
        pytest.param((), marks=pytest.mark.slow),
        pytest.param(("-n", "2"), marks=pytest.mark.slow),
        pytest.param(("--gradspec-profile", "full", "--gradspec-law", "vjp"), marks=pytest.mark.slow),
    ],
)
def test_the_test_file_of_the_page_on_pytest_runs(tmp_path, words):
    text = (HOW_TO / "verify-in-pytest.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    shutil.copy(HOW_TO.parents[1] / "tests" / "cli" / "specs" / "tiny.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\naddopts = --strict-markers\n")
    (tmp_path / "test_specs.py").write_text(
        block.replace("from yourpackage.specs import SPECS", "import tiny\nSPECS = (tiny.HONEST, tiny.DISEASED)")
    )
    laws = () if words[:1] == ("--gradspec-profile",) else ("--gradspec-law", "primal", "--gradspec-law", "vjp")
    command = ["-m", "pytest", "-rA", "-p", "no:cacheprovider", *words, *laws]
    if words:
        run = python(*command, cwd=tmp_path)
    else:  # as a reader starts it
        run = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=False)
    verdicts = set(re.findall(r"^(PASSED|FAILED) test_specs.py::test_laws\[(.*?\])\]", run.stdout, re.MULTILINE))

    chosen = ("vjp",) if not laws else ("primal", "vjp")
    assert verdicts == {
        (
            "FAILED" if (spec, law, case) == ("ignores_factor", "vjp", "factor 0.1") else "PASSED",
            f"{spec}::{law}[{case}]",
        )
        for spec in ("honest", "ignores_factor")
        for law in chosen
        for case in ("factor 0.1", "factor 1")
    }, run.stdout + run.stderr
