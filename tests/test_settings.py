"""Settings that decide what fails: warnings are errors, none is silenced, the README asks for what the project does."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_site_is_built_with_every_warning_as_an_error() -> None:
    noxfile = ast.parse((ROOT / "src" / "gradspec_lab" / "tasks" / "_environment.py").read_text(encoding="utf-8"))
    told = {
        target.id: n.value
        for n in noxfile.body
        if isinstance(n, ast.Assign)
        for target in n.targets
        if isinstance(target, ast.Name)
    }
    command = ast.literal_eval(told["BUILD_SITE"])
    assert {"-n", "-W"} <= set(command), f"the site is built by {command}: without -n or -W, what is wrong passes"


def test_the_site_silences_no_warning() -> None:
    conf = ast.parse((ROOT / "conf" / "conf.py").read_text(encoding="utf-8"))
    silenced = [
        ast.literal_eval(node.value)
        for node in conf.body
        if isinstance(node, ast.AnnAssign | ast.Assign) and "suppress_warnings" in ast.unparse(node).partition("=")[0]
        if node.value is not None
    ]
    assert silenced == [[]], "conf/conf.py silences warnings"


def test_pytest_takes_warnings_for_errors() -> None:
    assert PROJECT["tool"]["pytest"]["ini_options"]["filterwarnings"][0] == "error"


def test_the_readme_asks_for_what_the_project_asks_for() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (python, torch) = re.search(r"needs Python ([\d.]+) or newer and torch ([\d.]+) or newer", readme).groups()  # type: ignore[union-attr]
    (tested,) = re.findall(r"built and tested with ([\d.]*\d)", readme)
    constraints = (ROOT / "conf" / "constraints.txt").read_text(encoding="utf-8")
    (wanted,) = (name for name in PROJECT["project"]["dependencies"] if name.startswith("torch"))
    (pinned,) = re.findall(r"^torch==[\d.]+$", constraints, re.MULTILINE)
    for words, said, where, truth in (
        (f"needs Python {python} or newer", f">={python}", "pyproject.toml", PROJECT["project"]["requires-python"]),
        (f"torch {torch} or newer", f"torch>={torch}", "pyproject.toml", wanted),
        (f"tested with {tested}", f"torch=={tested}", "conf/constraints.txt", pinned),
    ):
        line = readme.count("\n", 0, readme.index(words)) + 1
        assert said == truth, f"README.md:{line}: {words!r}, and {where} says {truth}"
