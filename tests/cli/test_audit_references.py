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


SOLVER = """
import torch
class Fixed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        y = _solved(lambda y: torch.tanh(y @ w + x), x)
        ctx.save_for_backward(y, w)
        return y.clone()
    @staticmethod
    def backward(ctx, g):
        y, w = ctx.saved_tensors
        d = 1 - y * y
        u = _solved(lambda u: (g + u @ w.T) * d, g)
        return u, y.T @ u
def _solved(step, x):
    y = torch.zeros_like(x)
    for _ in range(200):
        y, before = step(y), y
        if (y - before).abs().max() < 1e-6: break
    return y
def plain(x, w):
    y = torch.zeros_like(x)
    for _ in range(100):
        y = torch.tanh(y @ w + x)
    return y
"""


#: A call of it, held to what it should compute.
SOLVED = ["solver.py:Fixed", "--reference", "solver.py:plain", "--case", "(randn(4, 3), 0.2 * randn(3, 3))"]


def test_an_audit_is_told_how_accurate_results_are_and_its_spec_says_so(gradspec, folder):
    (folder / "solver.py").write_text(SOLVER)
    told = gradspec("audit", *SOLVED, "--law", "primal", "--accuracy", "rtol=1e-5", "--proposal", "spec.py")
    assert told.exit_code == 0, told.stdout
    assert "accuracy=Accuracy(rtol=1e-05)," in (folder / "spec.py").read_text()


@pytest.mark.slow
def test_an_audit_says_how_to_declare_an_accuracy_and_repeats_one_that_was(gradspec, folder):
    (folder / "solver.py").write_text(SOLVER)
    exact = gradspec("audit", *SOLVED, "--law", "vjp")
    assert exact.exit_code == 1
    assert "declare accuracy=Accuracy(rtol=...), or --accuracy rtol=..." in " ".join(exact.stdout.split())
    wrong = gradspec("audit", *SOLVED, "--law", "vjp", "--accuracy", "rtol=1e-9,accumulate=float32")
    assert wrong.exit_code == 1
    assert "--accuracy rtol=1e-09,accumulate=float32" in " ".join(wrong.stdout.split())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("rtol", "'rtol' is no NAME=VALUE"),
        ("rto=1", "no 'rto': did you mean 'rtol'?"),
        ("rtol=a", "rtol is 'a', expected a number, such as 1e-10"),
        ("rtol=-1", "rtol is -1.0, expected a number from 0 to 1, such as 1e-10"),
        ("store=int8", "store is 'int8', expected a floating-point dtype, such as bfloat16"),
        ("rtol=1e-3,rtol=1e-4", "rtol is there twice"),
    ],
)
def test_an_accuracy_that_cannot_be_is_one_line(gradspec, given, said):
    done = gradspec("audit", "torch:sin", "--case", "(randn(3),)", "--accuracy", given)
    assert done.exit_code == 2
    assert done.stderr.strip() == f"Error: --accuracy: {said}"
