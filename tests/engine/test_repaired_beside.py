"""A mistake in what backward calls, and in the numbers that it shares with forward, is said with its line."""

import importlib
import math

import pytest
import torch
from torch.autograd import Function
from torch.nn.functional import pad

from gradspec import audit
from gradspec.findings import findings

SLOPE, CUBE = 1.702, 0.044715


def likely(function, *cases):
    (found,) = findings(audit(function, cases or ["(randn(3, 5),)"], laws=["surrogate"]).report)
    return found.verdict.finding.likely


class Quick(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(SLOPE * x)

    @staticmethod
    def slope(x):
        s = torch.sigmoid(SLOPE * x)
        return s + x * s * (1 - s)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar * Quick.slope(x)


class Tanh(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.tanh(math.sqrt(2 / math.pi) * (x + CUBE * x**3))

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        t = torch.tanh(math.sqrt(2 / math.pi) * (x + 0.44715 * x**3))
        return y_bar * (t + x * (1 - t * t) * math.sqrt(2 / math.pi) * (1 + 3 * CUBE * x * x))


class Gelu(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * (1 + torch.erf(x / 2**0.5))

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar * (1 + torch.erf(x / 2.0) + x * torch.exp(-0.5 * x * x) * (2 / math.pi) ** 0.5)


class Shifted(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * pad(x[:, :-2], (2, 0))

    @staticmethod
    def backward(ctx, y_bar):
        return 2 * y_bar.roll(-2, dims=1)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (
            Quick,
            "right with `x * s * (1 - s) * SLOPE` in place of `x * s * (1 - s)` (test_repaired_beside.py:31, in slope)",
        ),
        (Tanh, "right with `t = torch.tanh(math.sqrt(2 / math.pi) * (x + CUBE * x ** 3))` in place of"),
        (Gelu, "x / 2 ** 0.5) + x * torch.exp("),
        (Shifted, "right with `y_bar.roll(-2, dims=1).index_fill(1, torch.tensor([-2, -1]), 0)` in place of"),
    ],
)
def test_a_number_of_forward_a_method_beside_it_and_what_a_shift_brings_in(function, says):
    assert says in likely(function)


BESIDE = """
import torch

def whole(x, s):
    return s * (1 + x * (1 + s))

def slope(x):
    return whole(x, torch.sigmoid(x))
"""
SILU = """
import torch
from beside_silu import slope

class Silu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar * slope(x)
"""


def test_a_function_of_another_file_and_what_it_calls_are_read(tmp_path, monkeypatch):
    (tmp_path / "beside_silu.py").write_text(BESIDE)
    (tmp_path / "my_silu.py").write_text(SILU)
    monkeypatch.syspath_prepend(tmp_path)

    says = likely(importlib.import_module("my_silu").Silu)
    assert says == "right with `1 - s` in place of `1 + s` (beside_silu.py:5, in whole)"
