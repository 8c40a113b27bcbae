"""The exit codes that help texts and pages state are those that the commands have, for each verdict and each rank."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from gradspec._finding import fault
from gradspec.cli import main
from gradspec.findings import judge
from gradspec.law import LIMIT, Finding, Rank, Scope, Status, Verdict
from gradspec.report import Report, write_record

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/exit-codes.md").read_text(encoding="utf-8")
FAIL_ON = r"Exit with (\d) for violations of this rank or worse. Checks without a verdict always exit with (\d)."
CUT_OFF, FAULT, NOT_ASKED = "a limit ran out", "a fault of the spec", "not asked about"
CONTEXT = click.Context(main)
COMMANDS = {name: one for name in main.list_commands(CONTEXT) if (one := main.get_command(CONTEXT, name))}


def finding_of(outcome: str) -> Finding:
    """Return a finding of a rank or a status, as the page calls it."""
    if outcome == CUT_OFF:
        return Finding(status=Status.NOT_MEASURED, message="m", details={LIMIT: "time"})
    if outcome == FAULT:
        return fault("m")
    if outcome in list(Rank):
        return Finding(status=Status.BROKEN, message="m", rank=outcome)
    return Finding(status=Status(outcome.replace(" ", "_")), message="m")


def exit_code(outcome: str, folder: Path, *options: str, audited: bool = False, asked: bool = True) -> int:
    """Return the exit code for a record with one outcome."""
    law = {"family": "gradients", "statement": "a = b", "doc": "", "cost": "ms"}
    law |= {} if asked else {"scope": "higher", "promise": "double_backward"}
    sheet = {"kind": "function", "supports": {"double_backward": None}, "audited": audited}
    made = Report(
        provenance={"date": "2026-01-02"},
        sheets={"scale": sheet},
        laws={"vjp": law},
        sources={},
        verdicts=(Verdict(spec="scale", law="vjp", case="one", finding=finding_of(outcome)),),
    )
    write_record(made, folder / "record.json")
    words = ["show", str(folder / "record.json"), "--format", "badge", *options]
    done = CliRunner().invoke(main, words)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code


def table(heading: str) -> list[tuple[str, str, int]]:
    """Return the cells of the table below a heading of the page: the finding, the option, the code."""
    part = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    head, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if "|" in line
    ]
    return [(row[0], column, int(code)) for row in rows for column, code in zip(head[1:], row[1:], strict=True)]


@pytest.mark.parametrize("heading", ["`check` and `show`", "`audit`"])
def test_the_page_says_the_code_of_each_finding_under_each_option(heading: str, tmp_path: Path) -> None:
    cells = table(heading)
    wrong = []
    for outcome, column, stated in cells:
        options = re.findall(r"`([^`]+)`", column)
        words = options[0].split() if options else []
        how = {"audited": heading == "`audit`", "asked": column != NOT_ASKED}
        if (code := exit_code(outcome, tmp_path, *words, **how)) != stated:
            wrong.append(f"{outcome}, {column}: the page says {stated}, and it is {code}")
    assert wrong == []
    told = {outcome.replace(" ", "_") for outcome, _, _ in cells}
    assert told == {
        *Rank,
        *(status for status in Status if status is not Status.BROKEN),
        *(one.replace(" ", "_") for one in (CUT_OFF, FAULT)),
    }


def test_the_page_names_each_scope() -> None:
    part = PAGE.partition("## What is asked about")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE) == list(Scope)


@pytest.mark.parametrize("scope", list(Scope))
def test_a_scope_that_is_named_is_the_only_one_that_fails(scope: Scope) -> None:
    law = {"family": "gradients", "statement": "a = b", "doc": "", "cost": "ms", "scope": str(scope)}
    for named in Scope:
        report = Report(
            provenance={"profile": {"scopes": [str(named)]}},
            sheets={"scale": {"kind": "function", "supports": {}}},
            laws={"vjp": law},
            sources={},
            verdicts=(Verdict(spec="scale", law="vjp", case="one", finding=finding_of("wrong")),),
        )
        assert judge(report).fails is (named is scope)


def test_a_silently_wrong_result_of_the_compiler_fails_and_a_refusal_does_not(tmp_path: Path) -> None:
    law = {"family": "transforms", "statement": "", "doc": "", "cost": "ms", "scope": "compile", "promise": "compile"}
    for outcome, fails in (("wrong", True), ("refused", False)):
        report = Report(
            provenance={},
            sheets={"scale": {"kind": "function", "supports": {"compile": None}}},
            laws={"compile": law},
            sources={},
            verdicts=(Verdict(spec="scale", law="compile", case="one", finding=finding_of(outcome)),),
        )
        assert judge(report).fails is fails


def codes_of(command: str) -> dict[int, str]:
    """Return what the help of a command says of each exit code."""
    told = (COMMANDS[command].epilog or "").partition("Exit code:\n")[2].partition("\n\n")[0]
    lines = re.sub(r"\n {4,}", " ", told).splitlines()
    return {int(line.split()[0]): line.split(maxsplit=1)[1] for line in lines if line.strip()}


def test_the_page_says_of_other_commands_what_their_help_says() -> None:
    part = PAGE.partition("## Other commands\n")[2]
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (.*) \|$", part, re.MULTILINE)
    said = {(name, int(code)): words for name, code, words in rows}
    others = [name for name in COMMANDS if name not in ("check", "audit")]

    assert said == {(name, code): words for name in others for code, words in codes_of(name).items()}


def place(file: str, words: str) -> str:
    """Return where a file says something: FILE:LINE."""
    text = (ROOT / file).read_text(encoding="utf-8")
    (at,) = (found.start() for found in re.finditer(words, text))
    return f"{file}:{text.count(chr(10), 0, at) + 1}"


def help_of(option: str) -> str:
    """Return the help of an option of `check`."""
    (found,) = (one for one in COMMANDS["check"].params if option in one.opts)
    return str(found.help)  # type: ignore[attr-defined]


def test_the_help_of_check_names_the_code_of_each_verdict(tmp_path: Path) -> None:
    told = codes_of("check")
    assert "arguments" in told[CliRunner().invoke(main, ["check", "no_such_module"]).exit_code]
    for status in Status:
        code = exit_code("wrong" if status is Status.BROKEN else status, tmp_path)
        word = "something raised" if status is Status.ERROR else status.value
        wrong = [other for other, words in told.items() if re.search(rf"\b{word}\b", words) and other != code]
        assert not wrong, f"help of check, exit code {wrong[0]}: {told[wrong[0]]!r}: {word} exits with {code}"
        assert not code or word in told[code], f"help of check, exit code {code}: {told[code]!r} leaves out {word}"


@pytest.mark.parametrize("fail_on", list(Rank))
def test_the_help_of_fail_on_states_the_exit_codes(fail_on: Rank, tmp_path: Path) -> None:
    where = place("src/gradspec/cli/_output.py", "Exit with . for violations")
    said = re.fullmatch(FAIL_ON, help_of("--fail-on"))
    assert said, f"{where}: the help of --fail-on says {help_of('--fail-on')!r}: teach this test what that means"
    for outcome in (*Rank, *(status for status in Status if status is not Status.BROKEN)):
        code = exit_code(outcome, tmp_path, "--fail-on", fail_on.value)
        if isinstance(outcome, Rank):
            ranks = list(Rank)
            stated = int(said[1]) if ranks.index(outcome) <= ranks.index(fail_on) else 0
        else:
            stated = int(said[2]) if outcome.is_failure else 0
        what = f"{where}: the help says exit code {stated} of {outcome} with --fail-on {fail_on}"
        assert stated == code, f"{what}, and it is {code}"


def test_the_help_of_exit_zero_states_the_exit_code(tmp_path: Path) -> None:
    (stated, cut_off) = re.findall(r"with (\d)", help_of("--exit-zero"))
    codes = [exit_code(outcome, tmp_path, "--exit-zero") for outcome in ("wrong", CUT_OFF)]
    assert [int(stated), int(cut_off)] == codes, f"the help of --exit-zero says {stated} and {cut_off}: it is {codes}"


@pytest.mark.parametrize("command", [name for name in COMMANDS if codes_of(name)])
def test_no_help_calls_a_failure_a_success(command: str) -> None:
    told = codes_of(command)
    bad = [status.value for status in Status if status.is_failure]
    assert [word for word in bad if re.search(rf"\b(is|are) {word}", told[0])] == []
    good = [status.value for status in Status if not status.is_failure]
    assert [word for word in good if re.search(rf"\b{word}\b", told.get(1, ""))] == []


@pytest.mark.parametrize(
    ("file", "words", "options"),
    [
        ("docs/how-to/verify-in-ci.md", r"`gradspec check` exits with (\d) if a law is broken", ()),
        ("docs/how-to/run-on-cuda.md", r"the command exit with (\d) even if a law is broken", ("--exit-zero",)),
        ("docs/reference/commands.md", r"`show` exits with (\d) for a record with a failure", ()),
        ("docs/how-to/verify-in-ci.md", r"The second command exits with (\d) until", ("--baseline", "{}/known.json")),
    ],
    ids=["check", "exit zero", "show", "baseline"],
)
def test_a_page_states_the_exit_code_of_a_broken_law(
    file: str, words: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    (stated,) = re.findall(words, (ROOT / file).read_text(encoding="utf-8"))
    exit_code("wrong", tmp_path)
    shutil.copy(tmp_path / "record.json", tmp_path / "known.json")
    code = exit_code("wrong", tmp_path, *(option.format(tmp_path) for option in options))
    assert int(stated) == code, f"{place(file, words)}: it exits with {code}, not with {stated}"


SPECS_AT_FAULT = """
from gradspec import Case, FunctionSpec


def cases(make):
    yield Case(name="one", args=(make(3),))


def no_cases(make):
    raise ValueError("no numbers")
    yield


def broken(x):
    raise KeyError("typo")


def sine(x):
    return x.sin()


def double(x):
    return 2 * x


HOW = {"wrt": ("x",), "cases": cases}
MISTYPED = FunctionSpec(name="mistyped", function=sine, primal=broken, surrogate=broken, **HOW)
WITHOUT_CASES = FunctionSpec(
    name="without_cases", function=sine, primal=sine, surrogate=sine, wrt=("x",), cases=no_cases
)
WRONG = FunctionSpec(name="wrong", function=double, primal=sine, surrogate=sine, **HOW)
"""


@pytest.mark.parametrize(("spec", "code"), [("MISTYPED", 2), ("WITHOUT_CASES", 2), ("WRONG", 1)])
def test_a_spec_that_is_at_fault_is_no_failure_of_its_function(spec: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "at_fault.py").write_text(SPECS_AT_FAULT, encoding="utf-8")
    done = CliRunner().invoke(main, ["check", f"{tmp_path / 'at_fault.py'}:{spec}", "--law", "primal", "--jobs", "1"])
    assert done.exit_code == code, done.output


LOSES_A_SECOND = """
import torch

from gradspec import Case, FunctionSpec


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(2 * x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]


def cases(make):
    yield Case(name="one", args=(make(3),))


SQUARE = FunctionSpec(name="square", function=Square.apply, primal=lambda x: x * x, wrt=("x",), cases=cases)
"""


@pytest.mark.parametrize("words", [["audit", "--case", "(randn(3),)"], ["check"]], ids=["audit", "check"])
def test_the_line_that_repeats_a_finding_asks_about_it(words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "square.py"
    path.write_text(LOSES_A_SECOND, encoding="utf-8")
    command, *rest = words
    target = f"{path}:{'Square' if command == 'audit' else 'SQUARE'}"
    how = ["--law", "second_order", "--scope", "training,higher", "--jobs", "1"]
    done = CliRunner().invoke(main, [command, target, *rest, *how])
    (line,) = [line for line in done.output.splitlines() if line.startswith("  Again:  ")]
    assert line.endswith("--scope higher")
    again = CliRunner().invoke(main, shlex.split(line.partition("gradspec ")[2]))
    assert (done.exit_code, again.exit_code) == (1, 1), again.output
