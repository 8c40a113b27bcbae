"""What is warned of decides no verdict: a user's filters end where a law begins, and are back behind it."""

import os
import subprocess
import sys
import warnings

import pytest
import torch

from gradspec import Case, FunctionSpec, Supports, verify
from gradspec._engine._compiler import import_compiler
from gradspec._process_state import unwarned
from gradspec.laws import LAWS

CHOSEN = ("primal", "vjp", "jvp", "forward_over_reverse", "vmap", "global_state")


class Warns(torch.autograd.Function):
    """Sound, and as loud as torch where it deprecates what it uses itself."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        warnings.warn("the user's own", UserWarning, stacklevel=1)
        return 2 * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, y_bar):
        warnings.warn("as torch says", DeprecationWarning, stacklevel=1)
        return 2 * y_bar

    @staticmethod
    def jvp(ctx, x_dot):
        warnings.warn("`torch.jit.script` is deprecated", FutureWarning, stacklevel=1)
        return 2 * x_dot


def cases(make):
    warnings.warn("while a case is made", FutureWarning, stacklevel=1)
    yield Case(name="three", args=(make(3),))


def double(x):
    return 2 * x


WARNS = FunctionSpec(
    name="warns",
    function=Warns.apply,
    primal=double,
    surrogate=double,
    wrt=("x",),
    cases=cases,
    supports=Supports.all(),
)


@pytest.mark.parametrize("isolate", [False, None], ids=["in this process", "in a child"])
def test_that_filters_which_raise_change_no_verdict(isolate):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = list(warnings.filters)
        report = verify([WARNS], [law for law in LAWS if law.name in CHOSEN], isolate=isolate)
        after = list(warnings.filters)

    assert {v.law: str(v.status) for v in report.verdicts} == dict.fromkeys(CHOSEN, "holds")
    assert after == before


def test_that_a_function_may_make_errors_of_warnings_itself():
    def strict(x):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return Warns.apply(x)

    report = verify([WARNS.for_(strict, name="strict")], [law for law in LAWS if law.name == "vjp"], isolate=False)

    assert [v.finding.details["raised"] for v in report.verdicts] == ["UserWarning: the user's own"]


@pytest.mark.slow
def test_that_an_option_of_python_changes_no_verdict():
    laws = [word for law in CHOSEN for word in ("--law", law)]
    command = [sys.executable, "-W", "error", "-m", "gradspec", "check", f"{__file__}:WARNS", *laws]
    env = {**os.environ, "PYTHONWARNINGS": "error"}
    run = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120)

    assert f"\nwarns on 1 case: {len(CHOSEN)} laws hold\n" in run.stdout, run.stdout + run.stderr
    assert (run.returncode, run.stderr) == (0, "")


def test_that_the_compiler_may_warn_while_it_is_imported(monkeypatch):
    def list_backends(exclude_tags):
        warnings.warn("of a backend of somebody's", DeprecationWarning, stacklevel=1)

    monkeypatch.setattr("torch._dynamo.list_backends", list_backends)
    import_compiler()


def test_that_a_block_without_warnings_ends():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with unwarned():
            warnings.warn("nobody hears it", FutureWarning, stacklevel=1)
        with pytest.raises(FutureWarning, match="heard"):
            warnings.warn("heard", FutureWarning, stacklevel=1)
