"""Coverage by file of tests: which files there are, and what is kept of each."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gradspec_lab.campaigns import coverage_run

pytestmark = pytest.mark.slow


def test_the_files_of_folders_the_largest_first_each_once():
    found = coverage_run.files_in(["tests/render", "tests/cli/test_check.py", "tests/cli"])
    sizes = [(coverage_run.ROOT / name).stat().st_size for name in found]

    assert "tests/cli/test_check.py" in found
    assert len(found) == len(set(found)) > 3
    assert sizes == sorted(sizes, reverse=True)


def test_a_folder_without_tests_is_named():
    with pytest.raises(ValueError, match="tests/nothing has no file of tests"):
        coverage_run.files_in(["tests/nothing"])


@pytest.mark.parametrize(
    ("body", "code", "ends"), [("assert f(1) == 2", 0, 0), ("assert f(1) == 3", 1, 0), (None, 2, 1)]
)
def test_what_a_file_runs_bears_its_name_and_a_failure_is_shown(tmp_path, monkeypatch, capsys, body, code, ends):
    (tmp_path / "tests").mkdir()
    (tmp_path / "mine.py").write_text("def f(x):\n    return x + 1\n")
    (tmp_path / "in_one_process.py").write_text("")
    test = f"from mine import f\n\n\ndef test_f():\n    {body}\n" if body else "import not_there\n"
    (tmp_path / "tests" / "test_mine.py").write_text(test)
    (tmp_path / "pyproject.toml").write_text('[tool.coverage.run]\nparallel = true\nbranch = true\nsource = ["."]\n')
    monkeypatch.setattr(coverage_run, "ROOT", tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["coverage_run.py", "tests", "--jobs", "1"])

    assert coverage_run.run("tests/test_mine.py").code == code
    assert coverage_run.main() == ends
    assert ("tests/test_mine.py: 1 passed" in capsys.readouterr().out) is (code == 0)
    coverage = [sys.executable, "-m", "coverage"]
    subprocess.run([*coverage, "combine", "-q"], cwd=tmp_path, check=True)
    said = subprocess.run(
        [*coverage, "json", "--show-contexts", "-o", "-", "-q"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert '["tests/test_mine.py"]' in said.stdout
