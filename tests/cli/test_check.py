import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from forked import python
from gradspec._engine._plan import plan
from gradspec._registry._laws import select_laws
from gradspec.report import Report, read_record

FAILURE = """\
ignores_factor breaks `vjp` on case `factor 0.1`

  """


def test_that_all_holds_is_exit_code_0(gradspec):
    result = gradspec("check", "tiny:HONEST", "--law", "vjp", "--law", "primal")

    assert result.exit_code == 0
    assert "honest on 2 cases: 2 laws hold\n" in result.stdout


def test_that_a_broken_law_is_exit_code_1_and_says_what_to_do(gradspec):
    result = gradspec("check", "tiny:DISEASED", "--law", "vjp", "--seed", "3")

    assert result.exit_code == 1
    assert FAILURE in result.stdout
    failure = result.stdout[result.stdout.index(FAILURE) :]
    for label in ("of `x`", "      got        ", "      expected   ", "   at [", "  Likely: "):
        assert label in failure
    assert "  Again:  gradspec check tiny:DISEASED --law vjp --case 'factor 0.1' --seed 3\n" in failure
    assert "ignores_factor on 2 cases: 0 laws hold, 1 broken (vjp)\n" in result.stdout


def test_that_the_command_it_gives_reproduces_the_failure_alone(gradspec):
    result = gradspec("check", "tiny.py:ignores_factor", "--law", "vjp", "--case", "factor 0.1", "--seed", "3")

    assert result.exit_code == 1
    assert "ignores_factor on 1 case: 0 laws hold, 1 broken (vjp)\n" in result.stdout


def test_that_the_table_has_a_row_for_each_law_and_a_column_for_each_spec(gradspec):
    lines = gradspec("check", "tiny", "--law", "vjp", "--law", "formula").stdout.splitlines()

    assert next(line.split() for line in lines if line.strip()) == ["law", "honest", "ignores_factor"]
    assert [" ".join(line.split()) for line in lines if line.startswith((" vjp", " formula"))] == [
        "vjp ✓ holds 2 ✗ broken 1, ✓ holds 1",
        "formula · not applicable 2 · not applicable 2",
    ]


def test_that_a_pipe_never_cuts_or_folds_a_name(gradspec, folder):
    name = "a_name_" * 20
    (folder / "long.py").write_text(f"import tiny\nA = tiny.HONEST.for_(tiny.Scale.apply, name={name!r})\n")

    for words in (("check", "long.py", "--law", "vjp"), ("list", "long.py")):
        assert any(name in line.split() for line in gradspec(*words).stdout.splitlines())


def test_that_verbose_says_why_a_law_was_not_checked(gradspec):
    quiet = gradspec("check", "tiny:HONEST", "--law", "formula").stdout
    verbose = gradspec("check", "tiny:HONEST", "--law", "formula", "--verbose").stdout

    assert "honest · formula · factor 1: not applicable: " in verbose
    assert "not applicable: " not in quiet


def test_that_json_is_the_report_and_nothing_else(gradspec, folder):
    with (folder / "tiny.py").open("a") as file:
        file.write("print('a stray line')\n")
    result = gradspec("check", "tiny.py", "--law", "vjp", "--format", "json")

    assert result.exit_code == 1
    assert result.stderr == "a stray line\n"
    report = Report.from_json(result.stdout)
    assert report.to_json() == result.stdout
    assert [(v.spec, v.case, v.status) for v in report.verdicts] == [
        ("honest", "factor 0.1", "holds"),
        ("honest", "factor 1", "holds"),
        ("ignores_factor", "factor 0.1", "broken"),
        ("ignores_factor", "factor 1", "holds"),
    ]
    assert json.loads(result.stdout)["provenance"]["profile"]["laws"] == ["vjp"]
    assert {"law vjp", "spec honest", "spec ignores_factor"} <= {*json.loads(result.stdout)["sources"]}


def test_that_a_record_is_written_though_a_law_is_broken(gradspec, folder):
    result = gradspec("check", "tiny", "--law", "vjp", "--record", "records/tiny.json")

    assert result.exit_code == 1
    assert [v.spec for v in read_record(folder / "records/tiny.json").failures] == ["ignores_factor"]
    assert [path.name for path in (folder / "records").iterdir()] == ["tiny.json"]


def test_that_exit_zero_leaves_the_judgement_to_the_reader(gradspec, folder):
    result = gradspec("check", "tiny", "--law", "vjp", "--record", "tiny.json", "--exit-zero")

    assert result.exit_code == 0
    assert len(read_record(folder / "tiny.json").failures) == 1


def test_that_show_says_what_check_said_and_where_it_was_measured(gradspec):
    checked = gradspec("check", "tiny", "--law", "vjp", "--record", "tiny.json")
    shown = gradspec("show", "tiny.json")

    said, _, measured = shown.stdout.rpartition("recorded: ")
    assert said == checked.stdout
    assert shown.exit_code == checked.exit_code == 1
    assert "torch 2." in measured
    assert "seed 0" in measured


def test_that_list_names_targets_that_check_takes_and_the_laws(gradspec):
    lines = [" ".join(line.split()) for line in gradspec("list", "tiny.py").stdout.splitlines()]

    assert "honest function tiny.py:HONEST Scales the gradient." in lines
    assert "ignores_factor function tiny.py:DISEASED Scales the gradient." in lines
    assert any(line.startswith("vjp derivative ") for line in lines)


def test_that_list_without_a_target_lists_ours(gradspec):
    listed = gradspec("list").stdout

    assert "gradspec.functions:GRAD_FACTOR" in listed
    assert "gradspec.nn:SHAKE_RESNET" in listed


def test_that_explain_prints_the_page_of_the_law(gradspec):
    from gradspec._registry._laws import select_laws

    (law,) = select_laws(["adjoint"])
    page = gradspec("explain", "adjoint").stdout

    assert law.statement in page
    assert law.section("Remedy").split()[0] in page.partition("Remedy:")[2]
    assert "family: derivative" in page
    assert ":math:" in law.doc
    assert ":math:" not in page


@pytest.mark.parametrize("command", ["check", "list", "explain", "show"])
def test_that_help_has_an_example(gradspec, command):
    help_text = gradspec(command, "--help").stdout

    examples = help_text.partition("Examples:\n")[2].splitlines()
    assert any(line.startswith(f"    gradspec {command}") for line in examples)


def _environment():
    loud = ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "COLUMNS", "PYTHONIOENCODING")
    kept = {key: value for key, value in os.environ.items() if key not in loud}
    return {**kept, "TERM": "xterm-256color", "PYTHONUTF8": "1"}


COMMAND = [sys.executable, "-c", "from gradspec.cli import main; main()", "check", "tiny", "--law", "vjp"]


@pytest.mark.slow
def test_that_a_pipe_gets_no_colour_and_no_progress(folder):
    run = python(*COMMAND[1:], env=_environment())

    assert run.returncode == 1
    assert "\x1b" not in run.stdout
    assert run.stderr == ""


@pytest.mark.parametrize("target", ["tiny", "tiny:HONEST"])
def test_that_a_pipe_gets_what_the_text_of_a_report_is(gradspec, target):
    run = gradspec(
        "check", target, "--law", "vjp", "--law", "primal", "--format", "text", "--format", "json=report.json"
    )

    assert run.stdout == f"{read_record(Path('report.json'))}\n"


@pytest.mark.slow
def test_that_a_terminal_gets_a_progress_bar_on_stderr(folder):
    terminal, child = pty.openpty()
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=child, env=_environment()) as run:
        os.close(child)
        drawn = b""
        while chunk := _read(terminal):
            drawn += chunk
        assert run.stdout is not None
        printed = run.stdout.read()
    os.close(terminal)

    assert "/4" in drawn.decode()
    assert "honest · vjp · factor 0.1" in drawn.decode()
    assert b"\x1b" not in printed


def _read(terminal):
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux: the other end is closed
        return b""


@pytest.mark.parametrize("words", ["--help", "check --help", "show record.json"])
def test_that_what_needs_no_torch_does_not_import_it(gradspec, words):
    if words.startswith("show"):
        gradspec("check", "tiny:HONEST", "--law", "vjp", "--record", "record.json")
    code = (
        "import atexit, sys; from gradspec.cli import main;"
        "atexit.register(lambda: print('torch' in sys.modules, file=sys.stderr)); main()"
    )
    run = subprocess.run([sys.executable, "-c", code, *words.split()], capture_output=True, text=True, check=True)

    assert run.stderr == "False\n"


def test_that_a_run_is_planned_once(gradspec, folder):
    # Making the cases may be dear: the command line plans, and `verify` must not plan again.
    (folder / "counted.py").write_text(
        "import dataclasses, tiny\n"
        "CALLS = []\n"
        "def cases(make):\n"
        "    CALLS.append(1)\n"
        "    yield from tiny.cases(make)\n"
        "COUNTED = dataclasses.replace(tiny.HONEST, name='counted', cases=cases)\n"
    )
    gradspec("check", "counted:COUNTED", "--law", "vjp")
    planned = len(sys.modules["counted"].CALLS)
    sys.modules["counted"].CALLS.clear()
    plan([sys.modules["counted"].COUNTED], select_laws(["vjp"]))

    assert planned == len(sys.modules["counted"].CALLS)


@pytest.mark.slow
def test_that_the_number_of_processes_changes_nothing_but_the_time(gradspec):
    laws = ("primal", "vjp", "adjoint", "second_order", "inputs_untouched", "wrong_call", "compile")
    words = ("check", "tiny", "--format", "json", *(word for law in laws for word in ("--law", law)))
    one, three = (gradspec(*words, "--jobs", str(jobs)).stdout for jobs in (1, 3))

    assert {v["status"] for v in json.loads(one)["verdicts"]} == {"holds", "broken"}
    assert [{**verdict, "seconds": 0} for verdict in json.loads(one)["verdicts"]] == [
        {**verdict, "seconds": 0} for verdict in json.loads(three)["verdicts"]
    ]


def test_that_no_process_is_a_mistake_of_the_user(gradspec):
    result = gradspec("check", "tiny", "--jobs", "0")

    assert result.exit_code == 2
    assert "0 is not in the range x>=1" in result.stderr


def test_that_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "gradspec", "--help"], capture_output=True, text=True, check=True)

    assert done.stdout.startswith("Usage: gradspec [OPTIONS] COMMAND")


def test_what_verdicts_stand_on_is_looked_up_only_for_a_report_that_is_kept(gradspec, monkeypatch):
    asked = []

    def sources(*_, **__):
        asked.append(True)
        return {}

    monkeypatch.setattr("gradspec._engine._verify.sources", sources)
    for words in (
        (),
        (
            "--format",
            "json",
        ),
        ("--record", "record.json"),
    ):
        gradspec("check", "tiny:HONEST", "--law", "primal", *words)

    assert len(asked) == 2
