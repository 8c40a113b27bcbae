"""Samples that torch accepts or rejects are differentiated implicitly: right ones hold, and wrong ones do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import Beta, Dirichlet, StudentT

from gradspec import audit
from gradspec.law import Status
from gradspec.laws import LAWS

SURROGATE = [law for law in LAWS if law.name == "surrogate"]
CALL = "(tensor([0.7, 1.5, 4.0]), tensor([2.0, 0.5, 3.0]))"


def gamma(at: Callable[[Tensor, Tensor], Tensor]) -> type:
    """Return the sampler of a gamma distribution; `at` chooses where the slope of its cumulative is taken."""

    class Sampled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, concentration: Tensor, rate: Tensor) -> Tensor:
            standard = torch._standard_gamma(concentration)
            ctx.save_for_backward(concentration, rate, standard, standard / rate)
            return standard / rate

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
            concentration, rate, standard, sample = ctx.saved_tensors
            slope = torch._standard_gamma_grad(concentration, at(standard, sample))
            return grad * slope / rate, -grad * sample / rate

    return Sampled


def plain(concentration: Tensor, rate: Tensor) -> Tensor:
    return torch._standard_gamma(concentration) / rate


@pytest.mark.parametrize("reference", [None, plain], ids=["alone", "reference"])
@pytest.mark.parametrize(
    ("function", "status"),
    [
        (gamma(lambda standard, sample: standard), Status.HOLDS),
        (gamma(lambda standard, sample: sample), Status.BROKEN),
    ],
    ids=["right", "wrong"],
)
def test_a_sample_moves_along_its_gradient(function: type, reference: Any, status: Status) -> None:
    laws = [law for law in LAWS if law.name in ("primal", "vjp", "surrogate")]
    report = audit(function, [CALL], laws=laws, reference=reference).report
    assert {verdict.law for verdict in report.failures} == (
        set() if status is Status.HOLDS else {"vjp"} if reference else {"surrogate"}
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: Beta(a, b).rsample(),
        lambda a, b: Dirichlet(torch.stack((a, b))).rsample().cos(),
        lambda a, b: StudentT(a + 2, b).rsample(),
        lambda a, b: torch._standard_gamma(a) * torch._standard_gamma(b),
    ],
    ids=["beta", "dirichlet", "student", "two"],
)
def test_the_samplers_of_torch_hold(function: Callable[..., Tensor]) -> None:
    (verdict,) = audit(function, [CALL], laws=SURROGATE).report.verdicts
    assert verdict.status is Status.HOLDS, verdict.finding


def test_half_of_the_gradient_of_a_sample_is_wrong() -> None:
    class Half(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, concentration: Tensor) -> Tensor:
            sample = torch._sample_dirichlet(concentration)
            ctx.save_for_backward(concentration, sample)
            return sample

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            concentration, sample = ctx.saved_tensors
            total = concentration.sum(-1, keepdim=True).expand_as(concentration)
            slope = torch._dirichlet_grad(sample, concentration, total)
            return slope * grad  # what the others lose is missing

    (verdict,) = audit(Half, ["(tensor([[0.7, 1.5, 4.0], [2.0, 0.5, 3.0]]),)"], laws=SURROGATE).report.verdicts
    assert verdict.status is Status.BROKEN
