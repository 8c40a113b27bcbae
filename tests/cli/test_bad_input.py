"""What cannot be used gets one line that says what to do, exit code 2, and leaves every file as it was."""

import json
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from gradspec._record._file import checksum, to_text
from gradspec._registry import _laws
from gradspec._registry import _registry as registry
from gradspec.report import read_record, read_records

TARGETS = {
    "no_such_package": "no module 'no_such_package': install it, or run from the folder that holds it",
    "gradspec.function": "no module 'gradspec.function': did you mean 'gradspec.functions'?",
    "gradspec.functions.GRAD_FACTOR": (
        "no module 'gradspec.functions.GRAD_FACTOR': write gradspec.functions:GRAD_FACTOR for a name in a module"
    ),
    "tests/functions": (
        "'tests/functions' is not an import path: write package.module, package.module:NAME, or a .py file"
    ),
    "tin.py": "no file 'tin.py': give the path of a Python file, or an import path",
    "tiny:HONST": "'tiny' has no 'HONST': did you mean 'HONEST'?",
    "tiny.py:Z": "'tiny.py' has no 'Z': its specs are 'honest', 'ignores_factor', 'HONEST', 'DISEASED'",
    "tiny:cases": "'tiny:cases' is a function: name a spec, or a tuple of them",
    "json": "'json' holds no spec: name a module that does, or add one (`gradspec list`)",
    "twice": "two specs are called 'honest' (twice and twice): rename one of them",
    "caseless": "spec 'caseless' has no case: let its `cases` yield at least one",
    "number_case": "spec 'number_case' yields a float where a case is expected: write a tuple of its arguments, or "
    "Case(name=..., args=(...,))",
    "same_case": "spec 'same_case' has two cases named 'factor 1': rename or remove one of them",
    "exits": (
        "importing 'exits' raised SystemExit: out of here: fix it, `python -c \"import exits\"` shows the traceback"
    ),
    "ends": "importing 'ends' ended the interpreter: os._exit(0): fix it",
    "turns.py": "importing 'turns.py' ended the interpreter: os.execv('/bin/true', ...): fix it",
    "lists": "listing the cases of spec 'lists' ended the interpreter: os._exit(0): fix it",
    "skips": (
        "importing 'skips' raised Skipped: could not import 'nothing_like_it': No module named 'nothing_like_it': "
        'fix it, `python -c "import skips"` shows the traceback'
    ),
    "classy": (
        "importing 'classy' raised ValueError: spec 'honest': function is the class Scale, and what is called is "
        'Scale.apply: fix it, `python -c "import classy"` shows the traceback'
    ),
    "inside/relative.py": (
        "'inside/relative.py' imports from its own package: name it as a module of that, as inside.relative:NAME"
    ),
    "arrays:A": "'arrays:A' is a ndarray: name a spec, or a tuple of them",
    "lazy": "asking 'lazy' for 'FUNCTIONS' raised RuntimeError: no FUNCTIONS: fix it",
    "lazy:A": "asking 'lazy' for 'A' raised RuntimeError: no A: fix it",
    "needs.py": (
        "importing 'needs.py' raised ModuleNotFoundError: No module named 'nothing_like_it': "
        "fix it, `python needs.py` shows the traceback"
    ),
}

MODULES = {
    "twice": "import dataclasses, tiny\nA = tiny.HONEST\nB = dataclasses.replace(A, version=2)\n",
    "caseless": "import dataclasses, tiny\nA = dataclasses.replace(tiny.HONEST, name='caseless', cases=lambda m: [])\n",
    "number_case": "import dataclasses, tiny\n"
    "A = dataclasses.replace(tiny.HONEST, name='number_case', cases=lambda m: [2.0])\n",
    "same_case": "import dataclasses, tiny\n"
    "A = dataclasses.replace(tiny.HONEST, name='same_case', cases=lambda m: 2 * list(tiny.cases(m))[1:])\n",
    "exits": "import sys\nsys.exit('out of\\nhere')\n",
    "ends": "import os\nos._exit(0)\n",
    "turns": "import os\nos.execv('/bin/true', ['true'])\n",
    "lists": "import dataclasses, os, tiny\n"
    "A = dataclasses.replace(tiny.HONEST, name='lists', cases=lambda make: os._exit(0))\n",
    "needs": "import nothing_like_it\n",
    "skips": "import pytest\npytest.importorskip('nothing_like_it')\n",
    "lazy": "def __getattr__(name):\n    raise RuntimeError(f'no {name}')\n",
    "arrays": "import numpy\nA = numpy.ones(2)\n",
    "classy": "import dataclasses, tiny, torch\n"
    "class Scale(torch.autograd.Function): pass\n"
    "A = dataclasses.replace(tiny.HONEST, function=Scale)\n",
    "inside/relative": "from . import nothing\n",
}


EARLIER = '{"schema": 1, "an": "earlier record"}'


@pytest.fixture
def refused(gradspec, folder):
    """Run `check` on something unusable, with a record in place that must survive; return its line."""
    (folder / "inside").mkdir()
    for name, text in MODULES.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "record.json").write_text(EARLIER)

    def run(*words):
        result = gradspec("check", *words, "--record", "record.json")
        assert result.exit_code == 2
        assert result.stdout == ""
        assert isinstance(result.exception, SystemExit)
        assert (folder / "record.json").read_text() == EARLIER
        assert not list(folder.glob("*.partial"))
        line = result.stderr.removeprefix("Error: ").removesuffix("\n")
        assert "\n" not in line
        return line

    return run


@pytest.mark.parametrize("target", TARGETS)
def test_target(refused, target):
    assert refused(target) == TARGETS[target]


@pytest.mark.usefixtures("refused")
def test_that_a_message_is_one_line_for_a_caller_too():
    with pytest.raises(registry.TargetError, match=r"SystemExit: out of here: fix it"):
        registry.resolve("exits")


def test_two_targets_with_different_specs_of_one_name(refused):
    expected = "two specs are called 'honest' (tiny:HONEST and twice:B): rename one of them"
    assert refused("tiny:HONEST", "twice:B") == expected


def test_law(refused):
    assert refused("tiny", "--law", "vjpp") == "no law 'vjpp': did you mean 'vjp'?"


@pytest.mark.parametrize(
    ("rank", "said"),
    [("wrogn", "did you mean 'wrong'?"), ("all", "choose from wrong, refused, waste, limit")],
)
def test_rank(refused, rank, said):
    assert refused("--fail-on", rank, "tiny") == f"--fail-on: no rank {rank!r}: {said}"


def test_an_empty_part_of_a_run_is_said(gradspec):
    result = gradspec("check", "tiny:HONEST", "--law", "primal", "--shard", "99/99")

    assert (result.exit_code, result.stderr) == (0, "part 99 of 99 is empty: there are 2 checks\n")


def test_a_function_in_a_file_that_is_named_as_pytest_names_it(gradspec):
    result = gradspec("audit", "tiny.py::Scale", "--case", "(randn(2), 0.5)")

    line = "Error: no operator 'tiny.py::Scale': write tiny.py:Scale for a name in a file\n"
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", line)


def test_case(refused):
    assert refused("tiny", "--case", "factor 0.2") == "no case 'factor 0.2': did you mean 'factor 0.1' or 'factor 1'?"


def test_profile_that_does_not_exist(refused):
    said = refused("tiny", "--profile", "quik")
    assert said.startswith("no profile 'quik': choose from cuda, every-case, full, quick")


PROFILES = {
    "directions = ": "profile 'mine.toml' is not valid TOML: ",
    "direction = 2": "profile 'mine.toml' has the unknown key 'direction': the keys are laws, scopes, backend, ",
    "directions = 'two'": "profile 'mine.toml': directions is 'two', expected int",
    "laws = ['vjpp']": "no law 'vjpp': did you mean 'vjp'?",
}


@pytest.mark.parametrize("text", PROFILES)
def test_profile(refused, folder, text):
    (folder / "mine.toml").write_text(text)

    assert refused("tiny", "--profile", "mine.toml").startswith(PROFILES[text])


def test_that_a_law_on_the_command_line_goes_before_those_of_the_profile(gradspec, folder):
    (folder / "mine.toml").write_text("laws = ['primal', 'vjp']")
    both = gradspec("check", "tiny:HONEST", "--profile", "mine.toml").stdout
    one = gradspec("check", "tiny:HONEST", "--profile", "mine.toml", "--law", "vjp").stdout

    assert "2 laws hold" in both
    assert "1 law holds" in one


@pytest.mark.parametrize("path", [".", "tiny.py/record.json", "tiny.py/new/record.json", "/proc/new/record.json"])
def test_record_that_cannot_be_written(gradspec, folder, path):
    # The module leaves a file when it is imported: a run of an hour must not come before the refusal.
    (folder / "marked.py").write_text("from tiny import HONEST\nopen('ran', 'w').close()\n")
    result = gradspec("check", "marked:HONEST", "--law", "vjp", "--record", path)

    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: --record {path} ")
    assert result.stderr.count("\n") == 1
    assert not (folder / "ran").exists()


@pytest.mark.parametrize("option", ["--record", "--html", "--format json"])
def test_a_link_that_leads_to_itself_is_refused_before_anything_runs(gradspec, folder, option):
    (folder / "out.json").symlink_to("out.json")
    words = [*option.split(), "out.json"] if " " not in option else ["--format", "json=out.json"]
    result = gradspec("check", "tiny:HONEST", "--law", "vjp", *words)

    line = f"Error: {option} out.json cannot be written (Too many levels of symbolic links): give another path\n"
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", line)


ENDLESS = {
    "for number in itertools.count():\n        yield Case(name=str(number), args=(make(2), 0.5))": (
        "no answer within 0.2 s of CPU time"
    ),
    "time.sleep(1e6)\n    yield": "no answer, and asleep for more than 0.2 s",
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no limit elsewhere")
@pytest.mark.parametrize("text", ENDLESS, ids=["endless", "asleep"])
def test_cases_that_do_not_end_are_refused_in_a_line(gradspec, folder, text):
    (folder / "endless.py").write_text(
        f"import dataclasses, itertools, time, tiny\nfrom gradspec.spec import Case\ndef cases(make):\n    {text}\n"
        "A = dataclasses.replace(tiny.HONEST, name='endless', cases=cases)\n"
    )
    before = signal.getsignal(signal.SIGXCPU)
    result = gradspec("check", "endless:A", "--law", "vjp", "--time-limit", "0.2")

    said = f"listing the cases of spec 'endless' gave {ENDLESS[text]}: let them end, or raise --time-limit"
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"Error: {said}\n")
    assert signal.getsignal(signal.SIGXCPU) is before


FORMATS = {
    ("--format", "junitt"): "no format 'junitt': did you mean 'junit'?",
    ("--format", "xml"): "no format 'xml': choose from text, json, github, junit, sarif, badge",
    ("--format", "text", "--format", "sarif"): "--format sarif must be alone on stdout: write --format sarif=PATH",
    ("--format", "junit="): ("--format junit= names no file: write --format junit=PATH, or --format junit for stdout"),
    ("--format", "text=a.txt"): "--format text goes to stdout: redirect it, or write --format json=PATH",
    ("--format", "junit=tiny.py/a.xml"): "--format junit tiny.py/a.xml cannot be written ",
    ("--html", "."): "--html . is a folder: give the path of a file",
    ("--baseline", "nowhere.json"): "nowhere.json cannot be read ",
    ("--baseline", "tiny.py"): "tiny.py is not JSON ",
    ("--baseline", "record.json"): "record.json has schema version 1, and this gradspec reads 2: make it again",
}


@pytest.mark.parametrize("words", FORMATS, ids=" ".join)
def test_that_an_output_that_cannot_be_given_is_refused_before_anything_runs(refused, folder, words):
    (folder / "marked.py").write_text("from tiny import HONEST\nopen('ran', 'w').close()\n")

    assert refused("marked:HONEST", *words).startswith(FORMATS[words])
    assert not (folder / "ran").exists()


RECORDS = {
    '{"schema": 99}': "record.json has schema version 99, and this gradspec reads 2: make it again",
    "not a record": "record.json is not JSON ",
    '{"schema": 2}': "record.json is a record of kind None, expected 'report': make it again",
    '{"schema": 2, "kind": "report"}': "record.json has been edited since it was measured",
    '{"schema": 2, "of": ' + "1" * 5000 + "}": "record.json is not JSON (Exceeds the limit",
}


@pytest.mark.parametrize("text", RECORDS, ids=[text[:40] for text in RECORDS])
def test_record(gradspec, folder, text):
    (folder / "record.json").write_text(text)
    result = gradspec("show", "record.json")

    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {RECORDS[text]}")
    assert result.stderr.count("\n") == 1


def test_record_that_does_not_exist(gradspec):
    assert gradspec("show", "nowhere.json").exit_code == 2


def test_that_a_case_that_raises_is_a_verdict_and_not_a_crash(gradspec, folder):
    result = gradspec("check", "raising.py", "--law", "vjp", "--record", "record.json")

    assert result.exit_code == 2
    assert "raising: `vjp` could not run on case `(making the cases)`" in result.stdout
    assert "KeyError: 'no such table'" in result.stdout
    assert {v.status for v in read_record(folder / "record.json").failures} == {"error"}


def test_that_a_process_prints_the_line_and_no_traceback(folder):
    command = [sys.executable, "-c", "from gradspec.cli import main; main()", "check", "no_such_package"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)

    assert run.returncode == 2
    assert run.stderr == f"Error: {TARGETS['no_such_package']}\n"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("a string", "entry point 'theirs:LAW' of gradspec.laws is a str: give a Law or a tuple"),
        (ImportError("gone"), "entry point 'theirs:LAW' of gradspec.laws raised ImportError: gone: fix it"),
        ("vjp", "two laws are called 'vjp': rename the one that is not gradspec's"),
    ],
)
def test_law_of_another_package(gradspec, monkeypatch, value, message):
    def load():
        if isinstance(value, Exception):
            raise value
        return ours[value] if value == "vjp" else value

    ours = {law.name: law for law in _laws.laws()}
    entry = SimpleNamespace(value="theirs:LAW", load=load)
    monkeypatch.setattr(_laws, "entry_points", lambda group: [entry])
    result = gradspec("check", "tiny", "--law", "vjp")

    assert result.exit_code == 2
    assert result.stderr == f"Error: {message}\n"


def test_that_an_interrupt_is_one_line_and_no_verdict(gradspec, folder):
    (folder / "interrupted.py").write_text("raise KeyboardInterrupt\n")
    result = gradspec("check", "interrupted", "--record", "record.json")

    assert result.exit_code == 130
    assert result.stderr == "Error: interrupted: the run was not finished, and nothing was written\n"
    assert not (folder / "record.json").exists()


def test_that_a_reader_who_leaves_gets_no_traceback(folder):
    command = f"{sys.executable} -c 'from gradspec.cli import main; main()' explain vjp | true"
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)

    assert run.stderr == ""


def test_that_cases_that_exit_are_a_verdict(gradspec, folder):
    (folder / "leaving.py").write_text(
        "import dataclasses, sys, tiny\n"
        "A = dataclasses.replace(tiny.HONEST, name='leaving', cases=lambda make: sys.exit(5))\n"
    )
    result = gradspec("check", "leaving:A", "--law", "primal")

    assert result.exit_code == 2
    assert "the case could not be made: SystemExit: 5" in result.stdout


@pytest.mark.parametrize("text", ["my notes", "[1, 2]", '{"mine": true}', "{A", "[[[["])
def test_a_file_that_is_no_record_is_not_replaced(gradspec, folder, text):
    (folder / "notes.json").write_text(text)
    result = gradspec("check", "tiny", "--law", "vjp", "--record", "notes.json")

    assert result.exit_code == 2
    assert result.stderr == (
        "Error: --record notes.json is not a record of gradspec, and would be replaced: give another path\n"
    )
    assert (folder / "notes.json").read_text() == text


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("check", "tiny", "--law", "vjp"), "kill matrix"),
        (("audit", "tiny:Twice", "--case", "(ones(2),)"), "seeds"),
    ],
    ids=" ".join,
)
def test_a_record_of_something_else_is_not_replaced(gradspec, folder, words, kind):
    text = to_text(kind, {})
    (folder / "other.json").write_text(text)
    result = gradspec(*words, "--record", "other.json")

    assert result.exit_code == 2
    assert result.stderr == (
        f"Error: --record other.json is a record of kind {kind!r}, and would be replaced: give another path\n"
    )
    assert (folder / "other.json").read_text() == text


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param(lambda text: text[: len(text) // 2], "is not JSON", id="cut off"),
        pytest.param(lambda text: "", "is not JSON", id="empty"),
        pytest.param(lambda text: text.replace('"schema": 2', '"schema": 1'), "schema version 1", id="older"),
        pytest.param(lambda text: text.replace('"holds"', '"broken"'), "has been edited", id="edited"),
        pytest.param(lambda text: text.replace('"tiny:HONEST"', '"\\ud800"'), "holds what no record", id="surrogate"),
    ],
)
def test_a_record_that_cannot_be_read_is_measured_again_and_said_in_one_line(gradspec, folder, spoil, said):
    words = ("check", "tiny:HONEST", "--law", "vjp", "--record", "record.json")
    gradspec(*words)
    whole = (folder / "record.json").read_text()
    spoilt = spoil(whole)
    assert spoilt != whole
    (folder / "record.json").write_text(spoilt)
    result = gradspec(*words)

    trouble, count = result.stderr.splitlines()
    assert said in trouble
    assert trouble.endswith("; measured again, and it is kept as record.json.unreadable")
    assert (folder / "record.json.unreadable").read_text() == spoilt
    assert count.startswith("0 of ")
    assert read_record(folder / "record.json").verdicts


def resealed(text, **changes):
    record = json.loads(text) | changes
    return json.dumps(record | {"checksum": checksum(record)})


@pytest.mark.parametrize(
    "changes",
    [
        {"sources": {"law vjp": {"roots": 5}}},
        {"sources": {"law vjp": {"roots": [1], "key": "x"}}},
        {"sources": {"law vjp": {"roots": ["a"], "key": 5}}},
        {"sources": [1]},
        {"missing": 5},
        {"missing": [["a"]]},
        {"older": [1]},
        {"provenance": {"profile": 5}},
    ],
)
def test_a_record_of_wrong_types_is_measured_again_without_a_traceback(gradspec, folder, changes):
    words = ("check", "tiny:HONEST", "--law", "vjp", "--record", "record.json")
    gradspec(*words)
    (folder / "record.json").write_text(resealed((folder / "record.json").read_text(), **changes))
    result = gradspec(*words)

    assert result.exit_code == 0, result.output
    assert "Traceback" not in result.output
    assert read_records(folder / "record.json")[-1].verdicts


LONE = """
import torch
from gradspec import FunctionSpec


def raises(x):
    raise ValueError("half of a pair: " + chr(0xD800))


SPEC = FunctionSpec(name="lone", function=raises, primal=lambda x: x, wrt=("x",), cases=[(torch.ones(2),)])
"""


@pytest.mark.parametrize("form", ["text", "json", "github", "junit", "sarif"])
def test_half_of_a_pair_of_surrogates_in_an_error_is_escaped(gradspec, folder, form):
    (folder / "lone.py").write_text(LONE)
    done = gradspec("check", "lone:SPEC", "--law", "vjp", "--format", form, "--record", "r.json")

    assert done.exit_code == 1
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert "half of a pair" in done.stdout.encode().decode()
    assert (folder / "r.json").exists()
