"""A function that misbehaves gets a verdict that says so, the run goes on, and the report is whole."""

import importlib
import json
import random
import re

import numpy
import pytest
import torch

from forked import OURS_ALONE, python
from gradspec import audit, verify
from gradspec._engine._child import available
from gradspec._registry._laws import select_laws
from gradspec.law import Status

LAWS = ("vjp", "global_state", "declared_draws")
#: By function, the law that says so, and what it says.
SAID = {
    "Raises": ("vjp", "raised RuntimeError: no gradient today"),
    "Exits": ("vjp", "raised SystemExit: 4"),
    "Ends": ("vjp", "the function ended the interpreter, with exit code 4"),
    "TwoGradients": ("vjp", "returned an incorrect number of gradients (expected 1, got 2)"),
    "Prints": ("global_state", r"it prints 'look at me\nand at me'"),
    "Reseeds": ("declared_draws", "generator"),
    "WidensTheDefault": ("global_state", "the default dtype is torch.float64, was torch.float32"),
    "PatchesTorch": ("global_state", "torch.nn.functional.relu has been replaced"),
}
needs_a_fork = pytest.mark.skipif(not available(), reason="no fork on this machine")


def surroundings():
    return (
        torch.get_default_dtype(),
        torch.nn.functional.relu,
        torch.get_rng_state().tolist(),
        random.getstate(),
        numpy.random.get_state(legacy=False)["state"]["pos"],
    )


def words(laws):
    return [word for law in laws for word in ("--law", law)]


@needs_a_fork
def test_on_the_command_line(folder):
    run = python("-m", "gradspec", "check", "misbehaving:SPECS", "--format", "json", *words(LAWS))
    said = {(v["spec"], v["law"]): v for v in json.loads(run.stdout)["verdicts"]}  # and nothing else on stdout

    assert run.returncode == 1
    assert len(said) == (len(SAID) + 1) * len(LAWS)
    for name, (law, message) in SAID.items():
        assert said[name, law]["status"] == "broken", name
        assert message in said[name, law]["message"]
    assert {said["Copy", law]["status"] for law in LAWS} == {"holds"}
    assert "and at me" in run.stderr


@pytest.mark.slow
@needs_a_fork
def test_in_pytest(folder):
    options = [word for law in LAWS for word in ("--gradspec-law", law)]
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = ("-m", "pytest", "-rA", "-p", "no:cacheprovider", *OURS_ALONE)
    run = python(*command, "--gradspec", "misbehaving:SPECS", *options)
    said = {(name, law): what for what, name, law in re.findall(r"^(FAILED|PASSED) (\w+)::(\w+)", run.stdout, re.M)}

    assert run.returncode == 1
    assert {said[name, law] for name, (law, _) in SAID.items()} == {"FAILED"}
    assert {said["Copy", law] for law in LAWS} == {"PASSED"}
    told_by_others = re.findall(r"^SKIPPED \[(\d+)\] .*: (?:follows from|the cause of) ", run.stdout, re.M)
    assert len(said) + sum(map(int, told_by_others)) == (len(SAID) + 1) * len(LAWS)


@pytest.mark.slow
@needs_a_fork
def test_in_python_and_in_an_audit(folder, monkeypatch):
    monkeypatch.syspath_prepend(str(folder))
    module = importlib.import_module("misbehaving")
    before = surroundings()
    report = verify(module.SPECS, select_laws(LAWS))
    x = torch.tensor([0.5, -1.0], dtype=torch.float64)
    audits = {
        cls.__name__: audit(cls, [(x,)], laws=select_laws(("global_state", "retained_graph"))) for cls in module.KINDS
    }

    assert {name for name in SAID if report.of(spec=name, law=SAID[name][0])[0].status is Status.BROKEN} == set(SAID)
    assert {v.status for v in report.of(spec="Copy")} == {Status.HOLDS}
    for name in ("Raises", "Exits", "Ends", "TwoGradients", "Prints", "WidensTheDefault", "PatchesTorch"):
        assert audits[name].report.failures, name
    assert audits["Copy"].report.failures == ()
    assert surroundings() == before


@pytest.mark.parametrize("name", ["Exits", "Reseeds", "WidensTheDefault", "PatchesTorch"])
def test_what_it_does_to_this_process_is_undone(folder, monkeypatch, name):
    monkeypatch.syspath_prepend(str(folder))
    module = importlib.import_module("misbehaving")
    before = surroundings()
    report = verify([spec for spec in module.SPECS if spec.name == name], select_laws(LAWS), isolate=False)

    assert report.of(law=SAID[name][0])[0].status is Status.BROKEN
    assert surroundings() == before


STEERS = r"""
import torch
from gradspec import Case, FunctionSpec

def steers(x):
    print("\x1b[1A\x1b[2Kall laws hold")
    raise RuntimeError("\x9b2K\u202eesle gnihtyna")

def copy(x):
    return x.clone()

def cases(make):
    yield Case(name="three", args=(make(3),))

SPEC = FunctionSpec(name="steers", function=steers, primal=copy, surrogate=copy, wrt=("x",), cases=cases)
"""
#: Beside lines of text: control characters, and what turns the direction of text.
STEERING = re.compile("[^\n\t -~\u00a0-\u200d\u2010-\u2029\u2070-\uffff]")


@needs_a_fork
@pytest.mark.parametrize(
    "words",
    [
        ("-m", "gradspec", "check", "steers.py"),
        ("-m", "gradspec", "check", "steers.py", "--format", "json"),
        ("-m", "pytest", "-rA", "-p", "no:cacheprovider", *OURS_ALONE, "--gradspec", "steers.py"),
    ],
    ids=["text", "JSON", "pytest"],
)
def test_that_what_it_prints_or_raises_steers_no_terminal(folder, words):
    (folder / "steers.py").write_text(STEERS)
    (folder / "pytest.ini").write_text("[pytest]\n")
    option = "--gradspec-law" if "pytest" in words else "--law"
    run = python(*words, option, "vjp", option, "global_state")

    assert r"\x9b2K\u202eesle gnihtyna" in run.stdout.replace(r"\\", "\\")
    assert r"\x1b[1A\x1b[2Kall laws hold" in (run.stdout if "pytest" in words else run.stderr)
    assert not STEERING.findall(run.stdout + run.stderr)
