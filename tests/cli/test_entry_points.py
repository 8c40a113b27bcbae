"""An installed package announces its specs and laws by entry points, and every command then knows them."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from forked import python

MODULE = """
from gradspec import Case, FunctionSpec, Law
from gradspec.law import HOLDS, broken


def check(trial):
    y = trial.spec.function(*trial.case.args)
    return HOLDS if bool((y > 0).all()) else broken("an output is not positive")


POSITIVE = Law(name="positive", family="yours", statement="F(x) > 0", check=check, doc="Outputs are positive.")
DOUBLE = FunctionSpec(
    name="announced",
    function=lambda x: 2 * x,
    primal=lambda x: 2 * x,
    surrogate=lambda x: 2 * x,
    wrt=("x",),
    cases=lambda make: iter([Case(name="ones", args=(make(3).abs() + 1,)), Case(name="zeros", args=(make(3) * 0,))]),
)
"""
WHEEL = {
    "announcing.py": MODULE,
    "announcing-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: announcing\nVersion: 1.0\n",
    "announcing-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "announcing-1.0.dist-info/entry_points.txt": (
        "[gradspec.specs]\nours = announcing:DOUBLE\n\n[gradspec.laws]\nours = announcing:POSITIVE\n"
    ),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package as pip does, in a folder of its own, and return that folder."""
    folder = tmp_path_factory.mktemp("announcing")
    wheel = folder / "announcing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in WHEEL.items():
            archive.writestr(name, text)
        record = "announcing-1.0.dist-info/RECORD"
        archive.writestr(record, "".join(f"{name},,\n" for name in (*WHEEL, record)))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target"]
    subprocess.run([*pip, str(folder / "site"), str(wheel)], check=True)
    return folder / "site"


def run(site: Path, *words: str, cold: bool = False) -> subprocess.CompletedProcess[str]:
    path = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1"}
    if cold:
        command = [sys.executable, "-m", "gradspec", *words]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    return python("-m", "gradspec", *words, env=env)


def test_the_list_shows_the_spec_and_the_law(site: Path) -> None:
    shown = run(site, "list", cold=True)
    assert shown.returncode == 0, shown.stderr
    assert "announcing" in shown.stdout
    assert "positive" in shown.stdout


@pytest.mark.slow
def test_a_law_of_a_package_is_held_to_a_spec_of_it(site: Path) -> None:
    judged = run(site, "check", "announcing:DOUBLE", "--law", "positive")
    assert judged.returncode == 1, judged.stdout + judged.stderr
    assert "an output is not positive" in judged.stdout
    assert "zeros" in judged.stdout
    assert run(site, "check", "announcing:DOUBLE", "--law", "positive", "--case", "ones").returncode == 0
    assert run(site, "explain", "positive").returncode == 0


@pytest.mark.slow
def test_without_the_package_nobody_knows_them(site: Path, tmp_path: Path) -> None:
    assert run(tmp_path, "explain", "positive").returncode == 2
