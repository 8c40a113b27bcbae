"""Modules beside a reference of their inputs: what they keep is held still, and their parameters are looked at too."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.autograd import Function

from gradspec import audit
from gradspec.findings import judge


class Scale(Function):
    @staticmethod
    def forward(ctx, x, square, weight):
        ctx.save_for_backward(x, square.rsqrt(), weight)
        return x * square.rsqrt() * weight

    @staticmethod
    def backward(ctx, y_bar):
        x, scale, weight = ctx.saved_tensors
        return y_bar * scale * weight, None, (y_bar * x * scale).sum(0)


class WrongForTheWeight(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        x_bar, none, weight_bar = Scale.backward(ctx, y_bar)
        return x_bar, none, weight_bar / 4


class Running(nn.Module):
    """Scales by a running mean square as it was, and moves it."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, 3))
        self.register_buffer("square", torch.linspace(0.8, 3.0, 3))

    def forward(self, x):
        y = self.function.apply(x, self.square, self.weight)
        with torch.no_grad():
            self.square.lerp_(x.square().mean(0), 0.1)
        return y


class Bag(Function):
    @staticmethod
    def forward(ctx, indices, weight):
        ctx.save_for_backward(indices, weight)
        return weight[indices].mean(1)

    @staticmethod
    def backward(ctx, y_bar):
        indices, weight = ctx.saved_tensors
        rows = (y_bar / indices.shape[1])[:, None].expand(*indices.shape, -1)
        return None, torch.zeros_like(weight).index_put_((indices,), rows, accumulate=True)


class OverwritesInBag(Bag):
    @staticmethod
    def backward(ctx, y_bar):
        indices, weight = ctx.saved_tensors
        rows = (y_bar / indices.shape[1])[:, None].expand(*indices.shape, -1)
        return None, torch.zeros_like(weight).index_put_((indices,), rows)


class Words(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function, self.weight = function, nn.Parameter(torch.linspace(-1, 1, 21).reshape(7, 3))

    def forward(self, indices):
        return self.function.apply(indices, self.weight)


def running(x):
    return x * torch.linspace(0.8, 3.0, 3).to(x).rsqrt() * torch.linspace(0.5, 1.5, 3).to(x)


def words(indices):
    return torch.linspace(-1, 1, 21).reshape(7, 3)[indices].mean(1)


X = "(randn(5, 3, dtype=float32, requires_grad=True),)"
INDICES = "(tensor([[1, 4, 1], [0, 6, 4]]),)"


@pytest.mark.parametrize(
    ("module", "call", "reference", "said"),
    [
        (Running(Scale), X, running, ""),
        (Running(WrongForTheWeight), X, running, "gradient of `weight`"),
        (Words(Bag), INDICES, words, ""),
        (Words(OverwritesInBag), INDICES, words, "gradient of `weight`"),
    ],
    ids=["running", "running-wrong", "words", "words-wrong"],
)
def test_the_parameters_of_a_module_are_judged_beside_a_reference(module, call, reference, said):
    report = audit(module, [call], reference=reference, jobs=1).report
    failing = [one.found.verdict for one in judge(report).findings if one.fails]

    assert [one.law for one in failing] == (["surrogate"] if said else [])
    assert not said or said in failing[0].finding.message
    assert module.state_dict().get("square", torch.tensor([0.8]))[0] == pytest.approx(0.8)
