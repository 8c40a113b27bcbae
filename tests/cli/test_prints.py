"""What a function prints does not fill the terminal: each line once, with how often, before the report."""

import pytest

from forked import python
from gradspec._engine._child import available
from gradspec.cli._prints import shortened

LOUD = """
import torch
from gradspec import Case, FunctionSpec

print("imported")

class Loud(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        print("forward of", tuple(x.shape))
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        print("backward")
        return grad

def cases(make):
    yield Case(name="three", args=(make(3),))

def same(x):
    return x.clone()

SPEC = FunctionSpec(name="loud", function=Loud.apply, primal=same, surrogate=same, wrt=("x",), cases=cases)
"""


@pytest.mark.skipif(not available(), reason="no fork on this machine")
@pytest.mark.parametrize(
    "words",
    [
        ("check", "loud.py", "--law", "vjp", "--law", "layout"),
        ("audit", "loud.py:Loud", "--case", "(randn(3),)", "--law", "layout", "--law", "retained_graph"),
        ("audit", "--all", "loud.py", "--law", "retained_graph"),
    ],
    ids=["check", "audit", "all"],
)
def test_each_line_is_printed_once(folder, words):
    (folder / "loud.py").write_text(LOUD)
    run = python("-m", "gradspec", *words)
    lines = run.stderr.splitlines()

    assert "imported" in lines
    assert [line.partition(" (printed ")[0] for line in lines].count("backward") == 1
    assert len(lines) <= 11
    assert "backward" not in run.stdout


def test_many_different_lines_are_counted():
    assert list(shortened(["a", *map(str, range(20)), "a", "3"])) == [
        "a (printed 2 times)",
        "0",
        "1",
        "2",
        "3 (printed 2 times)",
        "4",
        "5",
        "6",
        "7",
        "8",
        "and 11 more lines",
    ]
