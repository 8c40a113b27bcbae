"""An error in gradspec's own code is said as such, and one of the function as one of the function."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.autograd import Function

import gradspec
from gradspec import Case, FunctionSpec, Supports, audit, verify
from gradspec._audit import _probe
from gradspec._engine._child import Child, available
from gradspec.law import Law, Status
from gradspec.laws import LAWS
from gradspec.profile import load_profile

HERE = Path(gradspec.__file__).parent
LAYOUT = next(law for law in LAWS if law.name == "layout")


def ours(name, text):
    """Return a function as if it were written in a file of gradspec."""
    scope = {"torch": torch}
    exec(compile(text, str(HERE / name), "exec"), scope)
    return scope["made_up"]


CHECK = ours(
    "laws/tensor/_made_up.py", "def made_up(trial):\n    return trial.spec.function(*trial.case.args).nonsense"
)
MADE_UP = Law(name="made_up", family="values", statement="", check=CHECK, doc="")


def lost(x):
    return x.lost


def spec_of(function):
    return FunctionSpec(
        name="given",
        function=function,
        primal=lambda x: x,
        surrogate=lambda x: x,
        wrt=("x",),
        supports=Supports.eager(),
        cases=lambda make: iter([Case(name="three", args=(make(3),))]),
    )


@pytest.mark.parametrize(
    ("function", "status", "message"),
    [
        (
            lambda x: x,
            Status.ERROR,
            "gradspec itself raised AttributeError: 'Tensor' object has no attribute 'nonsense' "
            "(laws/tensor/_made_up.py:2)",
        ),
        (lost, Status.BROKEN, "raised AttributeError: 'Tensor' object has no attribute 'lost'"),
        # A function in C leaves no frame: the error may be its own.
        (torch.sin, Status.BROKEN, "raised AttributeError: 'Tensor' object has no attribute 'nonsense'"),
    ],
)
def test_a_law_that_raises_by_itself_is_no_finding_about_the_function(function, status, message):
    (verdict,) = verify([spec_of(function)], [MADE_UP], isolate=False).verdicts

    found = verdict.finding
    assert (found.status, found.details.get("found", found.message)) == (status, message)


@pytest.mark.skipif(not available(), reason="no fork on this machine")
def test_what_is_raised_in_a_child_is_its_answer(capfd):
    answer = ours("_audit/_made_up.py", "def made_up(number):\n    return {}[number]")
    with Child(answer, time_limit=20) as child:
        own = child.ask(1)
    with Child(lambda number: {}[number], time_limit=20) as child:
        other = child.ask(1)

    assert (own.status, own.message) == (Status.ERROR, "gradspec itself raised KeyError: 1 (_audit/_made_up.py:2)")
    assert (other.status, other.message) == (Status.ERROR, "a call raised KeyError: 1")
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(not available(), reason="no fork on this machine")
def test_an_audit_does_not_blame_the_call_for_a_defect_of_gradspec(monkeypatch):
    broken = ours("_audit/_made_up.py", "def made_up(trial, inputs, name):\n    raise NotImplementedError('no kernel')")
    monkeypatch.setattr(_probe, "fixed_gradient", broken)
    (verdict,) = audit(lambda x: 2 * x, ["(randn(3),)"], laws=[LAYOUT]).report.verdicts

    assert verdict.status is Status.ERROR
    assert verdict.finding.message == "gradspec itself raised NotImplementedError: no kernel (_audit/_made_up.py:2)"
    assert "report it" in verdict.finding.likely


class Hangs(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, y_bar):
        while True:
            pass


class HangsElsewhere(Function):
    """Halves until the number is small, which a negative one never is."""

    @staticmethod
    def forward(ctx, x):
        size = x.sum()
        while abs(size) > 1e-3 or size < 0:
            size = size / 2 if size > 0 else size
        return 2 * x

    @staticmethod
    def backward(ctx, y_bar):
        return 2 * y_bar


class ForwardModeAlone(Function):
    @staticmethod
    def forward(x):
        return x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(*inputs)

    @staticmethod
    def jvp(ctx, x_dot):
        (x,) = ctx.saved_tensors
        return x_dot * x.cos()


class RaisesBackwards(ForwardModeAlone):
    @staticmethod
    def backward(ctx, y_bar):
        raise ValueError("no kernel")


@pytest.mark.parametrize(
    ("function", "message", "likely"),
    [
        pytest.param(
            Hangs,
            "no answer within 2 s of CPU time, in a plain call or its backward pass",
            "the function hangs",
            marks=[pytest.mark.slow, pytest.mark.skipif(not available(), reason="no fork on this machine")],
        ),
        (ForwardModeAlone, "the backward pass of a plain call raises NotImplementedError", "write its `backward`"),
        (RaisesBackwards, "the backward pass of a plain call raises ValueError: no kernel", ""),
        (lost, "a plain call raises AttributeError", "give arguments that the function takes"),
    ],
)
def test_an_audit_says_what_a_plain_call_that_gives_nothing_did(function, message, likely):
    profile = replace(load_profile("quick"), time_limit=2.0)
    (verdict,) = audit(function, ["(randn(3),)"], laws=[LAYOUT], profile=profile).report.verdicts

    assert verdict.status is (Status.NOT_MEASURED if function is Hangs else Status.ERROR)
    assert verdict.finding.message.startswith(message)
    assert verdict.finding.likely.startswith(likely)
    assert bool(verdict.finding.likely) == bool(likely)


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="no fork on this machine")
def test_a_loop_that_ends_for_the_given_numbers_only_is_told_from_one_that_never_does():
    profile = replace(load_profile("quick"), time_limit=2.0)
    (verdict,) = audit(HangsElsewhere, ["(rand(3),)"], laws=[LAYOUT], profile=profile).report.verdicts

    assert verdict.status is Status.NOT_MEASURED
    assert verdict.finding.message.endswith("with other numbers in its arguments; the call as it is answers")
    assert "bound its iterations" in verdict.finding.likely
