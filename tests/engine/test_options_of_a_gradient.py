"""With which option, mask or size a gradient is right, and by which factor it is off in some places."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.explain._options import with_other_options
from gradspec.findings import findings
from gradspec.laws.tensor.support._call import Inputs


class Distances(Function):
    """Of vectors, by a power; backward knows the square alone."""

    @staticmethod
    def forward(ctx, x, power):
        size = distances(x, power)
        ctx.save_for_backward(x, size)
        return size

    @staticmethod
    def backward(ctx, size_bar):
        x, size = ctx.saved_tensors
        return (size_bar / size)[:, None] * x, None


def distances(x, power):
    return x.abs().pow(power).sum(-1).pow(1 / power)


class Dropped(Function):
    """The probabilities of a softmax with some dropped; backward takes those that are left for those of the softmax."""

    @staticmethod
    def forward(ctx, x, keep, rate):
        p = dropped(x, keep, rate)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, p_bar):
        (p,) = ctx.saved_tensors
        return p * (p_bar - (p_bar * p).sum(-1, keepdim=True)), None, None


def dropped(x, keep, rate):
    return x.softmax(-1) * keep / (1 - rate)


class Turned(Function):
    """Each element times the sine of the one across; backward turns in the same direction as forward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return turned(x)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        order = across(x)
        return y_bar * x[:, order].sin() + (y_bar * x * x[:, order].cos())[:, order]


def across(x):
    size = x.shape[1]
    return [(k + size // 2) % size for k in range(size)]


def turned(x):
    return x * x[:, across(x)].sin()


class Inverse(Function):
    """The inverse of a real Fourier transform; backward takes its last number for one that has no mirror image."""

    @staticmethod
    def forward(ctx, x, size):
        ctx.size = size
        return torch.fft.irfft(x, n=size)

    @staticmethod
    def backward(ctx, y_bar):
        x_bar = torch.fft.rfft(y_bar, n=ctx.size) / ctx.size
        counts = torch.full((x_bar.shape[-1],), 2.0)
        counts[0] = counts[-1] = 1.0
        return x_bar * counts, None


def inverse(x, size):
    return torch.fft.irfft(x, n=size)


POWER = "(randn(4, 3, requires_grad=True), 3.0)"
KEEP = "(randn(3, 4, requires_grad=True), tensor([[1.0, 0, 1, 1], [0, 1, 1, 0], [1, 1, 1, 0]]), 0.5)"
ODD = "(randn(2, 5, requires_grad=True),)"
SPECTRUM = "(randn(2, 4, dtype=complex128, requires_grad=True), 7)"


@pytest.mark.parametrize("with_reference", [True, False], ids=["reference", "alone"])
@pytest.mark.parametrize(
    ("function", "reference", "call", "words"),
    [
        (Distances, distances, POWER, "right where `power` is 2.0, and wrong where it is 3.0"),
        (Dropped, dropped, KEEP, "right where `keep` is 1 everywhere and `rate` is 0.0, and wrong where they are not"),
        (Turned, turned, ODD, "right where the size of dimension 1 of `x` is even, and wrong where it is odd"),
        (Inverse, inverse, SPECTRUM, "off by the factor 0.5 at index 3 of dimension 1 (of 4), right elsewhere"),
    ],
    ids=["power", "mask-and-rate", "odd-size", "place"],
)
def test_the_cause_says_with_what_it_is_right(function, reference, call, words, with_reference):
    how: dict[str, Any] = {"reference": reference} if with_reference else {}
    (found, *_) = findings(audit(function, [call], laws=["vjp", "surrogate"], jobs=1, **how).report)

    assert found.verdict.finding.likely.endswith(words)


@pytest.mark.parametrize("value", [-1, 0, 1, 2, 3, 0.0, 0.5, 1.0, 2.0, True])
def test_another_option_has_another_value(value):
    others = [one.values["option"] for _, one in with_other_options(Inputs({"option": value}, ()))]

    assert value not in others
