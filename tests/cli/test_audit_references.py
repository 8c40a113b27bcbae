"""`gradspec audit --reference` and `--surrogate`: the laws of a spec, without a spec file."""

import re

import pytest

OPS = """
import torch

class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad

class Wrong(Cube):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x**2 * grad

class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad

def cube(x):
    return x * x * x

def soft(x):
    return x

def held(inputs, output, cotangent):
    return cotangent * (inputs.x > 0.5)

class Held(Round):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x > 0.5)

def two(x, y):
    return x + y

def fails(x):
    raise RuntimeError("no kernel")
"""
CASE = ("--case", "(randn(4),)")
LAWS = ("--law", "primal", "--law", "vjp")


@pytest.fixture
def audit(gradspec, folder):
    (folder / "ops.py").write_text(OPS)
    return lambda *words: gradspec("audit", *words, *CASE)


def test_a_function_is_held_to_a_reference(audit):
    sound, wrong = (audit(f"ops.py:{name}", "--reference", "ops.py:cube", *LAWS) for name in ("Cube", "Wrong"))

    assert (sound.exit_code, wrong.exit_code) == (0, 1)
    assert "2 laws hold" in sound.output
    assert "Wrong breaks `vjp`" in wrong.output


def test_the_command_that_runs_a_law_again_names_the_references(audit, gradspec):
    said = audit("ops.py:Wrong", "--reference", "ops.py:cube", "--surrogate", "ops.py:cube", *LAWS).output

    (again,) = re.findall(r"Again: +gradspec (.*)", said)
    assert again.replace("'", "").split("--case")[1].startswith(" (randn(4),) --reference ops.py:cube --surrogate")
    assert "--law vjp" in again


def test_a_gradient_that_is_meant_is_held_to_its_surrogate(audit):
    done = audit("ops.py:Round", "--surrogate", "ops.py:soft", "--law", "vjp", "--law", "surrogate")

    assert done.exit_code == 0, done.output
    assert "2 laws hold" in done.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--reference", "ops.py:two"), "reference does not take the inputs of the function: missing a required"),
        (("--surrogate", "ops.py:two"), "surrogate does not take the inputs of the function: missing a required"),
        (("--reference", "ops.py:nothing"), "'ops.py' has no 'nothing'"),
        (("--reference", "nowhere:cube"), "no module 'nowhere'"),
        (("--reference", "ops.py:Cube"), "reference is the function itself: give one in plain torch"),
        (("--reference", "ops.py:torch"), "reference cannot be called: it is <module 'torch'"),
        (("--surrogate", "ops.py:fails"), "the surrogate raises RuntimeError: no kernel (case '(randn(4),)')"),
    ],
)
@pytest.mark.parametrize("command", ["audit", "init"])
def test_bad_input_is_one_line_and_nothing_is_written(audit, gradspec, folder, command, words, said):
    before = {path.name for path in folder.iterdir()} | {"ops.py", "__pycache__"}
    more = () if command == "init" else ("--proposal", "proposed.py", "--record", "record.json")
    done = gradspec(command, "ops.py:Cube", *words, *CASE, *more)

    assert done.exit_code == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert {path.name for path in folder.iterdir()} <= before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--law", "vjp"), "the law 'vjp' needs a spec, and an audit has none: leave it out, write the spec, or give"),
        (("--surrogate", "ops.py:soft", "--law", "primal"), "no law is left of primal: it compares with a reference"),
    ],
)
def test_a_law_that_has_nothing_to_compare_with_is_refused(audit, words, said):
    done = audit("ops.py:Cube", *words)

    assert (done.exit_code, said in done.stderr) == (2, True)


def test_references_are_of_one_function(gradspec):
    done = gradspec("audit", "--all", "math", "--reference", "math:sin")

    assert done.exit_code == 2
    assert "--all goes with no --case, --sweep, --reference" in done.stderr


def test_a_gradient_of_no_map_is_held_to_what_is_declared(audit):
    declared = ("--gradient", "ops.py:held", "--law", "vjp", "--law", "second_order")
    sound, wrong = (audit(f"ops.py:{name}", *declared) for name in ("Held", "Round"))

    assert (sound.exit_code, wrong.exit_code) == (0, 1), sound.output
    assert "1 law holds, 1 not applicable" in sound.output
    assert "    gradient=held,\n" in sound.output
    assert "--gradient ops.py:held --law vjp" in wrong.output


def test_a_surrogate_and_a_gradient_are_refused_in_one_line(audit):
    done = audit("ops.py:Held", "--gradient", "ops.py:held", "--surrogate", "ops.py:soft")

    assert done.exit_code == 2
    assert done.output.strip() == "Error: give surrogate or gradient, not both: either says what backward is"
