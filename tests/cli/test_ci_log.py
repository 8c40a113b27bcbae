"""Nothing that others wrote commands the service that keeps a log: records, specs, cases, what is printed."""

import json
import re

import pytest

from gradspec._one_line import for_log, name_of
from gradspec._record._file import checksum

#: What GitHub's runner takes for a command: `::name` where a line begins, blanks left out; `##[name]` anywhere.
COMMAND = re.compile(r"^\s*::|##\[|##vso\[")
HOSTILE = (
    "x\n::error file=a.py::injected",
    "::stop-commands::x",
    "\u2028  ::warning::y",
    "a ##[add-mask]b",
    "\t::set-env::",
)
#: Fields whose texts are words of ours.
WORDS = ("status", "rank", "scope")
LOUD = """
import torch
from gradspec import Case, FunctionSpec

class Loud(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        print("::error file=a.py::from a print")
        print("  ::warning::indented, ##[error]and the old form")
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        raise ValueError("::error::from\\n::error::an error")

def cases(make):
    yield Case(name="three", args=(make(3),))

def same(x):
    return x.clone()

SPEC = FunctionSpec(name="loud", function=Loud.apply, primal=same, surrogate=same, wrt=("x",), cases=cases)
"""


def commands(run):
    return [line for text in (run.stdout, run.stderr) for line in text.splitlines() if COMMAND.search(line)]


def with_text(value, text, but=()):
    """Return plain data with every text, names of fields left out, replaced by another one."""
    if isinstance(value, str):
        return text
    if isinstance(value, dict):
        return {key: item if key in but else with_text(item, text, but) for key, item in value.items()}
    return [with_text(item, text, but) for item in value] if isinstance(value, list) else value


@pytest.fixture
def record(gradspec, folder):
    (folder / "loud.py").write_text(LOUD)
    gradspec("check", "loud.py", "--law", "vjp", "--law", "primal", "--record", "r.json")
    return json.loads((folder / "r.json").read_text())


def sealed(folder, record):
    (folder / "sealed.json").write_text(json.dumps({**record, "checksum": checksum(record)}))
    return "sealed.json"


@pytest.mark.parametrize("text", HOSTILE)
def test_no_field_of_a_record_commands(gradspec, folder, record, text):
    record["missing"] = [["a spec", "a law", "a case"]]
    for key in ("missing", "provenance", "sheets", "laws", "verdicts"):
        part = with_text(record[key], text, but=(*WORDS, "scopes"))
        named = {text: next(iter(part.values())), **part} if key in ("sheets", "laws") else part
        run = gradspec("show", sealed(folder, {**record, key: named}), "--verbose")

        assert not commands(run), key
        assert run.exit_code == 1, key


@pytest.mark.parametrize("word", WORDS)
def test_a_word_that_a_record_does_not_have_is_an_error_of_one_line(gradspec, folder, record, word):
    for part in (*record["verdicts"], *record["laws"].values()):
        part.update({word: HOSTILE[0]} if word in part else {})
    run = gradspec("show", sealed(folder, record))

    assert run.exit_code == 2
    assert len(run.stderr.splitlines()) == 1
    assert not commands(run)


def test_github_commands_are_only_ours(gradspec, folder, record):
    for one in record["verdicts"]:
        one.update(case=HOSTILE[0], rerun=HOSTILE[0], message=HOSTILE[0])
    lines = commands(gradspec("show", sealed(folder, record), "--format", "github"))

    assert lines
    assert all(re.match(r"::(error|notice) (file=[^:]*,)?title=gradspec%3A ", line) for line in lines)


def test_what_a_function_prints_or_raises_commands_nothing(gradspec, folder):
    (folder / "loud.py").write_text(LOUD)
    run = gradspec("check", "loud.py", "--law", "vjp", "--law", "primal")

    assert r"\x3a:error file=a.py::from a print" in run.stderr
    assert not commands(run)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_name_is_one_line(text):
    assert len(name_of(text).splitlines()) == 1
    assert not COMMAND.search(name_of(text))
    assert name_of(name_of(text)) == name_of(text)


def test_a_colour_that_a_pipe_drops_hides_no_command():
    assert for_log("\x1b[1m::error::x") == "\x1b[1m\\x3a:error::x"


@pytest.mark.parametrize("text", ["std::vector", "  at::native::add", "a: b", "# ## a heading", "", "x\n\n  y: z"])
def test_other_text_stays(text):
    assert for_log(text) == text
