"""A backward that writes over its cotangent, and reads it afterwards."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.findings import findings


class Scaled(Function):
    """Rows by their root mean square, times a weight; the gradient of the rows is written over the cotangent."""

    @staticmethod
    def forward(ctx, x, weight):
        scale = (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
        ctx.save_for_backward(x * scale, weight, scale)
        return x * scale * weight

    @staticmethod
    def backward(ctx, y_bar):
        z, weight, scale = ctx.saved_tensors
        z_bar = y_bar * weight
        y_bar.copy_(scale * (z_bar - z * (z_bar * z).mean(-1, keepdim=True)))
        return y_bar, (y_bar * z).sum(0)


def scaled(x, weight):
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * weight


@pytest.mark.parametrize("how", [{}, {"reference": scaled}], ids=["alone", "reference"])
def test_what_is_written_over_is_named_with_its_line(how: dict[str, Any]) -> None:
    call = "(randn(4, 3, requires_grad=True), randn(3, requires_grad=True))"
    (found, *_) = findings(audit(Scaled, [call], laws=["vjp", "surrogate"], jobs=1, **how).report)
    likely = found.verdict.finding.likely

    assert likely.startswith("right where aten.copy_ (test_written_over.py:28, in backward) writes to a copy")
    assert found.verdict.finding.reason.evidence["argument"] == "weight"


def test_of_complex_numbers_no_half_type_is_asked_about():
    x = torch.randn(3, dtype=torch.complex128, requires_grad=True)

    assert not [said for said in audit(torch.fft.fft, [x], laws=["empty"]).remarks if "float16" in said]
