"""Where in the code: the line of an error that backward raises, and the operation that makes a gradient NaN."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from torch.autograd import Function

from gradspec import Case, FunctionSpec, Supports, verify
from gradspec.laws import LAWS
from gradspec.render import failure_text

VJP = [law for law in LAWS if law.name in ("primal", "vjp")]


class Raises(Function):
    @staticmethod
    def forward(ctx, x):
        return x.sin()

    @staticmethod
    def backward(ctx, v):
        return v @ torch.ones(7, 7, dtype=v.dtype)  # the line


def of(function, primal, x=None):
    x = torch.tensor([[0.5, -0.25, 1.5]], dtype=torch.float64) if x is None else x
    return FunctionSpec(
        name="made",
        function=function,
        primal=primal,
        surrogate=primal,
        wrt=("x",),
        cases=lambda make: iter([Case(name="a", args=(x,))]),
        supports=Supports.eager(),
    )


def test_an_error_in_backward_says_its_line_without_being_asked():
    (verdict,) = verify([of(Raises.apply, lambda x: x.sin())], VJP).of(law="vjp")
    text = Path(__file__).read_text(encoding="utf-8").splitlines()
    line = next(n for n, said in enumerate(text, 1) if said.endswith("# the line"))

    assert verdict.finding.details["place"] == f"test_places.py:{line}, in backward"
    assert re.search(rf"^ +at +test_places\.py:{line}, in backward$", failure_text(verdict), re.MULTILINE)


def test_an_error_of_a_refusal_that_is_promised_has_no_line_in_a_record():

    spec = of(lambda x: Raises.apply(x), lambda x: x.sin())
    report = verify([spec], [law for law in LAWS if law.capability and law.cost == "ms"])

    assert all("place" not in v.finding.details for v in report.verdicts if not v.finding.is_failure)
