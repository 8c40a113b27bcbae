"""The exit codes that help texts and pages state are those that the commands have, for each verdict and each rank."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from gradspec.cli import main
from gradspec.law import Finding, Rank, Status, Verdict
from gradspec.report import Report, write_record

ROOT = Path(__file__).parents[2]
FAIL_ON = r"Exit with (\d) for violations of this rank or worse. Checks without a verdict always exit with (\d)."
#: What can be the worst of a run: a violation of some rank, or a status.
OUTCOMES = (*Rank, *(status for status in Status if status is not Status.BROKEN))
CONTEXT = click.Context(main)
COMMANDS = {name: one for name in main.list_commands(CONTEXT) if (one := main.get_command(CONTEXT, name))}
NUMBERS = ("none", "one", "two", "three", "four")


def exit_code(outcome: Rank | Status, folder: Path, *options: str) -> int:
    """Return the exit code for a record with one outcome."""
    is_rank = isinstance(outcome, Rank)
    finding = Finding(status=Status.BROKEN if is_rank else outcome, message="m", rank=outcome.value if is_rank else "")
    law = {"family": "gradients", "statement": "a = b", "doc": "", "cost": "ms"}
    made = Report(
        provenance={"date": "2026-01-02"},
        sheets={"scale": {"kind": "function"}},
        laws={"vjp": law},
        sources={},
        verdicts=(Verdict(spec="scale", law="vjp", case="one", finding=finding),),
    )
    write_record(made, folder / "record.json")
    words = ["show", str(folder / "record.json"), "--format", "badge", *options]
    done = CliRunner().invoke(main, words)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code


def codes_of(command: str) -> dict[int, str]:
    """Return what the help of a command says of each exit code."""
    told = (COMMANDS[command].epilog or "").partition("Exit code:\n")[2].partition("\n\n")[0]
    lines = re.sub(r"\n {4,}", " ", told).splitlines()
    return {int(line.split()[0]): line.split(maxsplit=1)[1] for line in lines if line.strip()}


def help_of(option: str) -> str:
    """Return the help of an option of `check`."""
    (found,) = (one for one in COMMANDS["check"].params if option in one.opts)
    return str(found.help)  # type: ignore[attr-defined]


def place(file: str, words: str) -> str:
    """Return where a file says something: FILE:LINE."""
    text = (ROOT / file).read_text(encoding="utf-8")
    (at,) = (found.start() for found in re.finditer(words, text))
    return f"{file}:{text.count(chr(10), 0, at) + 1}"


def test_the_help_of_check_names_the_code_of_each_verdict(tmp_path: Path) -> None:
    told = codes_of("check")
    assert "arguments" in told[CliRunner().invoke(main, ["check", "no_such_module"]).exit_code]
    for status in Status:
        outcome: Any = Rank.WRONG if status is Status.BROKEN else status
        code = exit_code(outcome, tmp_path)
        word = "something raised" if status is Status.ERROR else status.value
        wrong = [other for other, words in told.items() if re.search(rf"\b{word}\b", words) and other != code]
        assert not wrong, f"help of check, exit code {wrong[0]}: {told[wrong[0]]!r}: {word} exits with {code}"
        assert not code or word in told[code], f"help of check, exit code {code}: {told[code]!r} leaves out {word}"
    assert "holds" in told[0], f"help of check, exit code 0: {told[0]!r}"


@pytest.mark.parametrize("command", [name for name in COMMANDS if codes_of(name)])
def test_no_help_calls_a_failure_a_success(command: str) -> None:
    told = codes_of(command)
    bad = [status.value for status in Status if status.is_failure]
    assert [word for word in bad if re.search(rf"\b(is|are) {word}", told[0])] == []
    good = [status.value for status in Status if not status.is_failure]
    assert [word for word in good if re.search(rf"\b{word}\b", told.get(1, ""))] == []


@pytest.mark.parametrize("fail_on", list(Rank))
def test_the_help_of_fail_on_states_the_exit_codes(fail_on: Rank, tmp_path: Path) -> None:
    where = place("src/gradspec/cli/_output.py", "Exit with . for violations")
    said = re.fullmatch(FAIL_ON, help_of("--fail-on"))
    assert said, f"{where}: the help of --fail-on says {help_of('--fail-on')!r}: teach this test what that means"
    for outcome in OUTCOMES:
        code = exit_code(outcome, tmp_path, "--fail-on", fail_on.value)
        if isinstance(outcome, Rank):
            ranks = list(Rank)
            stated = int(said[1]) if ranks.index(outcome) <= ranks.index(fail_on) else 0
        else:
            stated = int(said[2]) if outcome.is_failure else 0
        what = f"{where}: the help says exit code {stated} of {outcome} with --fail-on {fail_on}"
        assert stated == code, f"{what}, and it is {code}"


def test_the_help_of_exit_zero_states_the_exit_code(tmp_path: Path) -> None:
    where = place("src/gradspec/cli/_output.py", "Exit with . even if a law is broken")
    (stated,) = re.findall(r"Exit with (\d) even if a law is broken", help_of("--exit-zero"))
    code = exit_code(Rank.WRONG, tmp_path, "--exit-zero")
    assert int(stated) == code, f"{where}: --exit-zero exits with {code}, not with {stated}"


def test_the_page_on_failures_says_for_how_many_ranks_a_run_fails(tmp_path: Path) -> None:
    file, words = (
        "docs/how-to/read-a-failure.md",
        r"`gradspec check --fail-on (\w+)` exits with (\d) for the first (\w+)",
    )
    ((rank, code, count),) = re.findall(words, (ROOT / file).read_text(encoding="utf-8"))
    codes = [exit_code(one, tmp_path, "--fail-on", rank) for one in Rank]
    first = [code == str(one) for one in codes].index(False)
    truth = f"--fail-on {rank} exits with {codes} for {', '.join(Rank)}: {code} for the first {NUMBERS[first]}"
    assert count == NUMBERS[first], f"{place(file, words)}: for the first {count}; {truth}"


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
    exit_code(Rank.WRONG, tmp_path)
    shutil.copy(tmp_path / "record.json", tmp_path / "known.json")
    code = exit_code(Rank.WRONG, tmp_path, *(option.format(tmp_path) for option in options))
    assert int(stated) == code, f"{place(file, words)}: it exits with {code}, not with {stated}"
