"""Where autograd has threads of its own, no child can take a gradient: a run does without children then."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest
import torch

from gradspec._engine._child import available

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not available(), reason="no fork on this machine")]

#: A backward within a backward, so deep that autograd goes on in a thread of its own, as it does for a device.
THREADS = """
import torch
from torch.autograd import Function

class Nested(Function):
    @staticmethod
    def forward(ctx, x):
        with torch.enable_grad():
            ctx.x = x.detach().requires_grad_() - 1
        return ctx.x.detach()

    @staticmethod
    def backward(ctx, y_bar):
        if ctx.x < 0:
            return y_bar
        with torch.enable_grad():
            Nested.apply(ctx.x).sum().backward()
        return y_bar

def start_threads():
    Nested.apply(torch.tensor([100.0], requires_grad=True)).sum().backward()
"""
CHILDREN = """
from gradspec._engine._autograd import children_take_gradients
before = children_take_gradients()
start_threads()
print(before, children_take_gradients())

from gradspec import verify
from gradspec._registry._laws import select_laws
from gradspec_lab.specimens import SCALE
found = verify([SCALE], select_laws(["primal", "vjp"]))
print({str(v.status) for v in found.verdicts})
"""
ONCE = """
from gradspec._engine import _autograd
asked, ask = [], _autograd._asked
_autograd._asked = lambda: asked.append(1) or ask()
able = _autograd.children_take_gradients() and _autograd.children_take_gradients()
before = len(asked)
start_threads()
print([able, before, _autograd.children_take_gradients(), len(asked)])
"""
RANKS = """
from dataclasses import replace
from gradspec import verify
from gradspec.law import HOLDS, Law
from gradspec._registry._laws import select_laws
from gradspec_lab.specimens.parallel import LAYERS
def check(trial):
    start_threads()
    return HOLDS
threads = Law(name="threads", family="modules", statement="", check=check, doc="Threads.", kinds=("module",))
found = verify([LAYERS], [threads, *select_laws(["ddp", "fsdp2"])], isolate=True)
print(sorted({f"{v.law} {v.status}" for v in found.verdicts}))
"""


def said(code: str) -> list[str]:
    # A new interpreter: one that is forked from a process that has taken a gradient dies of such depth.
    words = [sys.executable, "-c", THREADS + code]
    done = subprocess.run(words, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()


def test_a_child_is_asked_whether_it_can_and_a_run_does_without_where_it_cannot() -> None:
    assert said(CHILDREN) == ["True False", "{'holds'}"]


def test_a_child_that_can_is_not_asked_again() -> None:
    (line,) = said(ONCE)
    assert ast.literal_eval(line) == [True, 1, False, 2]


def test_a_law_that_starts_threads_leaves_the_two_ranks_alone() -> None:
    (line,) = said(RANKS)
    found = ast.literal_eval(line)
    assert found[:2] == ["ddp holds", "fsdp2 holds"]
    if torch.version.cuda is None:  # else the parent has settled, and torch dies of such depth in its child
        assert found[2:] == ["threads holds"]
