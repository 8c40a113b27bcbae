"""A kind that a package announces is checked, recorded and rendered: the page docs/how-to/add-a-kind.md, followed."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from gradspec.report import read_record
from pages.blocks import DOCS, read_blocks

PAGE = "how-to/add-a-kind.md"
BLOCKS = {block.kind: block.text for block in read_blocks((DOCS / PAGE).read_text(encoding="utf-8"), PAGE)}
CONF = """\
extensions = ["gradspec.sphinx_ext", "myst_parser"]
gradspec_records = ["record.json"]
gradspec_law_pages = "laws"
html_math_renderer = "gradspec_katex"
"""
INDEX = """\
# Index

```{gradspec-matrix}
```

```{gradspec-laws}
:toctree:
```

```{toctree}
halving
```
"""
#: A recipe: it builds a site, and starts a process for each of its commands.
pytestmark = pytest.mark.slow
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the package of the page is installed."""
    folder = tmp_path_factory.mktemp("installed")
    (folder / "schedules.py").write_text(BLOCKS["python"], encoding="utf-8")
    groups = tomllib.loads(BLOCKS["toml"])["project"]["entry-points"]
    lines = []
    for name, entries in groups.items():
        lines += [f"[{name}]", *(f"{key} = {value}" for key, value in entries.items())]
    info = folder / "schedules-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: schedules\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def run(package: Path) -> Run:
    def run(*words: str, where: Path) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(package), *filter(None, [os.environ.get("PYTHONPATH")])])
        env = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore", "NO_COLOR": "1", "COLUMNS": "200"}
        command = [sys.executable, "-m", *words]
        return subprocess.run(command, capture_output=True, text=True, env=env, cwd=where, timeout=120, check=False)

    return run


@pytest.fixture(scope="module")
def checked(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the record of the command of the page."""
    folder = tmp_path_factory.mktemp("source")
    done = run(*BLOCKS["sh"].split(), where=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "halving on 1 case" in done.stdout
    return folder


def test_its_specs_are_checked_and_recorded(checked: Path) -> None:
    report = read_record(checked / "record.json")
    assert {str(verdict.status) for verdict in report.of(law="falls")} == {"holds"}
    assert (report.sheets["halving"]["kind"], report.sheets["halving"]["warm_up"]) == ("schedule", 4)
    assert report.sources["spec halving"].key
    assert any("schedules" in root for root in report.sources["spec halving"].roots), "what makes its arguments counts"


def test_a_spec_that_breaks_its_law_is_caught(run: Run, checked: Path, package: Path) -> None:
    text = (package / "schedules.py").read_text(encoding="utf-8").replace("0.5 **", "2.0 **")
    (checked / "rising.py").write_text(text.replace('"halving"', '"rising"'), encoding="utf-8")
    done = run("gradspec", "check", "rising.py", where=checked)
    assert done.returncode == 1
    assert "the rate rises after step 9" in done.stdout


def test_a_check_without_a_target_takes_the_home_of_the_kind(run: Run, tmp_path: Path) -> None:
    done = run("gradspec", "list", where=tmp_path)
    assert "schedules:HALVING" in done.stdout
    assert "falls" in done.stdout


def test_pytest_makes_an_item_of_each_check(run: Run, tmp_path: Path) -> None:
    done = run("pytest", "--gradspec", "schedules:HALVING", "--gradspec-law", "falls", "-q", where=tmp_path)
    assert "1 passed" in done.stdout, done.stdout


def test_the_page_the_matrix_and_the_role_are_rendered(run: Run, checked: Path) -> None:
    (checked / "conf.py").write_text(CONF, encoding="utf-8")
    (checked / "index.md").write_text(INDEX, encoding="utf-8")
    (checked / "halving.md").write_text(f"# Halving\n\n{BLOCKS['']}", encoding="utf-8")
    done = run("sphinx", "-q", "-n", "-W", ".", "html", where=checked)
    assert (done.returncode, done.stderr) == (0, "")
    page = BeautifulSoup((checked / "html" / "halving.html").read_text(encoding="utf-8"), "html.parser")
    assert page.find(id="schedules.halving")
    assert {"Arguments", "Laws", "Provenance"} <= {title.get_text().rstrip("¶") for title in page.find_all("h2")}
    assert [link["href"] for link in page.find_all("a") if link.get_text() == "halving"] == ["#schedules.halving"]
    index = BeautifulSoup((checked / "html" / "index.html").read_text(encoding="utf-8"), "html.parser")
    (matrix,) = index.select("table.gradspec-matrix")
    rows = {row.find("td").get_text(): row.get_text(" ") for row in matrix.select("tbody tr")}
    assert "holds" in rows["falls"]
    assert (checked / "html" / "laws" / "falls.html").exists()
    listed = (checked / "html" / "gradspec-objects.html").read_text(encoding="utf-8")
    assert "Specs:\N{NO-BREAK SPACE}schedule" in listed
