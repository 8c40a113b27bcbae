"""The Python of every page runs, from top to bottom in one namespace, and prints what the page says."""

from __future__ import annotations

import doctest
import itertools
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import torch

from forked import python
from pages.blocks import DOCS, Block, all_blocks
from pages.commands import runs
from pages.test_blocks import ELSEWHERE

BLOCKS = [block for block in all_blocks() if (block.page, block.kind) not in ELSEWHERE]
PYTHON = [block for block in BLOCKS if block.kind == "python"]
COMMANDS = [(block.where, line) for block in BLOCKS if block.kind == "sh" for line in block.text.splitlines()]

#: What a page takes as given, in words a reader understands; nothing else stands between a page and its run.
GIVEN = {
    "modules/linear_average.md": """
import torch
from gradspec.nn import LinearAverage
bank = LinearAverage(4, 6)
embeddings = torch.nn.functional.normalize(torch.rand(3, 4), dim=1).requires_grad_()
instances = torch.tensor([0, 5, 2])
""",
}
#: Pages whose code compiles, or takes many seconds.
SLOW = ("how-to/specify-a-solver.md", "reference/operator-spec.md", "tutorial/your-first-spec.md")


@pytest.mark.parametrize(
    "blocks",
    [
        pytest.param(list(group), id=page, marks=[pytest.mark.slow] if page in SLOW else [])
        for page, group in itertools.groupby(PYTHON, key=lambda block: block.page)
    ],
)
def test_the_python_of_a_page_runs_and_prints_what_the_page_says(
    blocks: list[Block], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A page may write files, and reads those of the documentation.
    monkeypatch.chdir(tmp_path)
    Path("docs").symlink_to(DOCS)
    page = blocks[0].page
    # A module of this name, so that what a page defines has a home, as it has in a reader's file.
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(GIVEN.get(page, ""), names)
    report: list[str] = []
    with torch.random.fork_rng(devices=()):
        for block in blocks:
            if not block.is_doctest:
                exec(compile("\n" * block.line + block.text, page, "exec"), names)
                continue
            test = doctest.DocTestParser().get_doctest(block.text, names, f"{page}:{block.line}", page, block.line)
            assert len(test.examples) == sum(line.lstrip().startswith(">>>") for line in block.text.splitlines())
            test.globs = names
            doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(
                test, out=report.append, clear_globs=False
            )
    assert "".join(report) == ""


YOURS = """
from gradspec import Case, FunctionSpec


def cases(make):
    yield Case(name="numbers", args=(make(3),))


YOUR_SPEC = FunctionSpec(
    name="yours", function=lambda x: 2 * x, primal=lambda x: 2 * x, surrogate=lambda x: 2 * x, cases=cases, wrt=("x",)
)
"""


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the package that the pages leave to the reader."""
    folder = tmp_path_factory.mktemp("reader")
    package = folder / "yourpackage"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "functions.py").write_text(YOURS, encoding="utf-8")
    for page, module in (("add-a-module", "nn"), ("verify-a-text-function", "texts")):
        (text,) = (block.text for block in PYTHON if block.page == f"how-to/{page}.md")
        (package / f"{module}.py").write_text(text, encoding="utf-8")
    (law, *_) = (block.text for block in PYTHON if block.page == "how-to/add-a-law.md")
    (package / "laws.py").write_text(law, encoding="utf-8")
    installed = folder / "yourpackage-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: yourpackage\nVersion: 1.0\n", encoding="utf-8")
    entry = re.search(r"`(yours) = \"(.+)\"`", (DOCS / "how-to" / "add-a-law.md").read_text(encoding="utf-8"))
    assert entry, "the page shows no entry point"
    (installed / "entry_points.txt").write_text(f"[gradspec.laws]\n{entry[1]} = {entry[2]}\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("command", [pytest.param(command, id=where) for where, command in COMMANDS if runs(command)])
@pytest.mark.slow
def test_a_command_about_the_readers_package_runs(command: str, readers: Path) -> None:
    path = [str(readers), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1"}
    done = python("-m", "gradspec", *shlex.split(command)[1:], cwd=readers, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
