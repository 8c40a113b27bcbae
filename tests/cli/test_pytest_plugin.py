"""The plugin, run as users run it: in a process of its own, forked where its start is not what is tested."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import gradspec_pytest
from forked import OURS_ALONE, python
from gradspec.report import read_record


@pytest.fixture
def run_pytest(folder):
    (folder / "pytest.ini").write_text("[pytest]\n")

    def run(*words):
        alone = () if "-n" in words else OURS_ALONE
        return python("-m", "pytest", "-p", "no:cacheprovider", *alone, *words)

    return run


def test_that_each_spec_law_and_case_is_an_item(run_pytest):
    run = run_pytest("--gradspec", "tiny", "--gradspec-law", "vjp", "--gradspec-law", "primal", "--collect-only", "-q")

    assert run.returncode == 0
    assert run.stdout.splitlines()[:8] == [
        "honest::primal[factor 0.1]",
        "honest::primal[factor 1]",
        "honest::vjp[factor 0.1]",
        "honest::vjp[factor 1]",
        "ignores_factor::primal[factor 0.1]",
        "ignores_factor::primal[factor 1]",
        "ignores_factor::vjp[factor 0.1]",
        "ignores_factor::vjp[factor 1]",
    ]


def test_that_a_failure_says_what_the_command_line_says(run_pytest, gradspec):
    run = run_pytest("--gradspec", "tiny.py", "--gradspec-law", "vjp")
    said = gradspec("check", "tiny.py", "--law", "vjp").stdout
    failure = said[said.index("ignores_factor breaks") : said.index("honest on")].strip()

    assert run.returncode == 1
    assert "3 passed" in run.stdout
    assert "1 failed" in run.stdout
    assert failure.endswith("Again:  gradspec check tiny.py:DISEASED --law vjp --case 'factor 0.1' --seed 0")
    assert failure in run.stdout
    assert "Traceback" not in run.stdout


def test_that_what_was_not_checked_is_skipped_with_its_reason(run_pytest):
    run = run_pytest("--gradspec", "tiny:HONEST", "--gradspec-law", "formula", "-rs")

    assert run.returncode == 0
    assert "2 skipped" in run.stdout
    assert ": not applicable: " in run.stdout


def test_that_k_selects(run_pytest):
    run = run_pytest("--gradspec", "tiny", "-k", "honest and vjp")

    assert run.returncode == 0
    assert "2 passed" in run.stdout


def test_that_targets_of_the_ini_file_join_a_whole_run_but_not_that_of_one_file(run_pytest, folder):
    (folder / "pytest.ini").write_text("[pytest]\ngradspec_targets =\n    tiny:HONEST\n")
    (folder / "test_own.py").write_text("def test_own(): pass\n")

    assert "3 passed" in run_pytest("--gradspec-law", "vjp").stdout
    assert "1 passed" in run_pytest("--gradspec-law", "vjp", "test_own.py::test_own").stdout


def test_that_a_law_sees_what_was_said_of_the_laws_it_requires(run_pytest, folder):
    # The plugin must hand on the statuses by case, as `verify` does: the second law runs only after the first.
    (folder / "conftest.py").write_text(
        "import gradspec._engine._session\n"
        "run_check = gradspec._engine._session.run_check\n"
        "def spy(check, profile, *, seed=0, prior):\n"
        "    print(check.case, check.law.name, 'after', dict(prior), flush=True)\n"
        "    return run_check(check, profile, seed=seed, prior=prior)\n"
        "gradspec._engine._session.run_check = spy\n"
    )
    run = run_pytest("--gradspec", "tiny:HONEST", "--gradspec-law", "primal", "--gradspec-law", "vjp", "-s")

    assert "factor 0.1 primal after {}" in run.stderr  # the child's
    assert "factor 1 primal after {}" in run.stderr  # the child's
    assert "factor 0.1 vjp after {'primal': <Status.HOLDS: 'holds'>}" in run.stderr  # the child's


def test_that_a_case_that_raises_fails(run_pytest):
    run = run_pytest("--gradspec", "raising", "--gradspec-law", "vjp")

    assert run.returncode == 1
    assert "KeyError: 'no such table'" in run.stdout


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--gradspec", "tiny:HONST"), "ERROR: gradspec: 'tiny' has no 'HONST': did you mean 'HONEST'?"),
        (("--gradspec", "tiny", "--gradspec-law", "vjpp"), "ERROR: gradspec: no law 'vjpp': did you mean 'vjp'?"),
        (("--gradspec", "tiny", "--gradspec-profile", "quik"), "ERROR: gradspec: no profile 'quik': choose from "),
        (("--gradspec-scope", "higer"), "ERROR: gradspec: no scope 'higer': did you mean 'higher'?"),
        (("--gradspec-watch", "--gradspec-profile", "quik"), "ERROR: gradspec: no profile 'quik': choose from "),
        (("--gradspec-time-limit", "0"), "ERROR: gradspec: profile 'quick': directions must be at least 1"),
    ],
)
def test_that_bad_usage_is_one_line(run_pytest, words, line):
    run = run_pytest(*words)

    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert run.stderr.strip().startswith(line)
    assert run.stderr.strip().count("\n") == 0


@pytest.mark.parametrize(
    ("specs", "words", "line"),
    [
        ("[torch.autograd.Function]", (), "Function is not a spec: write a FunctionSpec of it, or call gradspec.audit"),
        ("[tiny.HONEST]", ("--gradspec-law", "vjpp"), "no law 'vjpp': did you mean 'vjp'?"),
    ],
)
def test_that_bad_usage_in_a_test_file_needs_no_traceback(run_pytest, folder, specs, words, line):
    lines = ("import tiny, torch", "from gradspec_pytest import parametrize_with_laws")
    text = "\n".join([*lines, f"@parametrize_with_laws({specs})", "def test_laws(check): check()", ""])
    (folder / "test_own.py").write_text(text)
    run = run_pytest("test_own.py", *words)

    assert run.returncode == pytest.ExitCode.INTERRUPTED
    assert f"gradspec: {line}" in run.stdout
    assert "_plan.py" not in run.stdout


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["test_own.py"]])
def test_that_pytest_starts_without_torch(folder, words):
    (folder / "test_own.py").write_text("import sys\ndef test_own(): assert 'torch' not in sys.modules\n")
    code = f"import pytest, sys; code = pytest.main({words}); sys.exit(code or 9 * ('torch' in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stdout
    assert words != ["--help"] or "--gradspec=TARGET" in run.stdout


def test_that_the_plugin_imports_no_other_frontend():
    files = Path(gradspec_pytest.__file__).parent.glob("*.py")
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    imported = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}

    assert "gradspec.render" in imported
    assert not {name for name in imported if name.startswith(("gradspec.cli", "gradspec.sphinx_ext"))}


@pytest.mark.parametrize(
    ("workers", "later"),
    [
        pytest.param((), (), id="one process"),
        pytest.param(("-n", "2"), ("-n", "1"), id="xdist", marks=pytest.mark.slow),
    ],
)
def test_that_a_record_is_kept_and_not_measured_again(run_pytest, folder, workers, later):
    words = ("--gradspec", "tiny:HONEST", "--gradspec-record", "record.json", "--gradspec-law", "vjp")
    first, second = run_pytest(*words, *workers), run_pytest(*words, *later)

    assert "gradspec: 0 of 2 cells were current; written to record.json" in first.stdout
    assert "gradspec: 2 of 2 cells were current; written to record.json" in second.stdout
    assert [v.case for v in sorted(read_record(folder / "record.json").verdicts, key=lambda v: v.case)] == [
        "factor 0.1",
        "factor 1",
    ]


def test_that_a_record_without_a_verdict_is_said_not_to_be_written(run_pytest, folder):
    (folder / "test_own.py").write_text("def test_nothing(): pass\n")
    run = run_pytest("--gradspec-record", "r.json", "test_own.py")

    assert run.returncode == 0
    assert "no law of a target ran, so r.json is not written" in run.stdout
    assert not (folder / "r.json").exists()


def test_that_a_run_of_some_items_leaves_the_rest_of_the_record(run_pytest, folder):
    words = ("--gradspec", "tiny:HONEST", "--gradspec-record", "record.json", "--gradspec-law", "vjp")
    run_pytest(*words)
    run_pytest(*words, "-k", "0.1")

    assert len(read_record(folder / "record.json").verdicts) == 2


ANOTHER_RUN = """
import os, subprocess, sys, pytest

@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish():
    if "ANOTHER" not in os.environ:
        words = ("--gradspec", "tiny:HONEST", "--gradspec-record", "kept.json", "--gradspec-law", "primal")
        environment = {**os.environ, "ANOTHER": "run"}
        subprocess.run([sys.executable, "-m", "pytest", "-q", *words], env=environment, check=True)
"""


@pytest.mark.slow
def test_that_what_another_run_writes_meanwhile_stays_in_the_record(run_pytest, folder):
    (folder / "conftest.py").write_text(ANOTHER_RUN)
    run = run_pytest("--gradspec", "tiny:HONEST", "--gradspec-record", "kept.json", "--gradspec-law", "vjp")

    assert run.returncode == 0, run.stdout
    assert {verdict.law for verdict in read_record(folder / "kept.json").verdicts} == {"primal", "vjp"}
