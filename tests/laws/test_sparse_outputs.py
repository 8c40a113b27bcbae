"""A function with a sparse output is judged by all numbers of it, and by its layout."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

from gradspec import Case, FunctionSpec, audit, verify
from gradspec.law import Status
from gradspec.laws import LAWS

INDEX = torch.tensor([[0, 1, 2, 2], [3, 1, 0, 1]])
ASKED = [law for law in LAWS if law.name in ("primal", "vjp", "surrogate", "layout", "retained_graph", "precision")]


def placed(w):
    return torch.sparse_coo_tensor(INDEX, w, (3, 4)) * 2


class Placed(Function):
    factor = 2

    @staticmethod
    def forward(ctx, w):
        return placed(w)

    @classmethod
    def backward(cls, ctx, g):
        return g.to_dense()[INDEX[0], INDEX[1]] * cls.factor


class Tripled(Placed):
    factor = 3


class Dense(Placed):
    @staticmethod
    def forward(ctx, w):
        return placed(w).to_dense()


class Rows(Placed):
    """Compressed rows."""

    @staticmethod
    def forward(ctx, w):
        return placed(w).to_sparse_csr()


def spec(function, reference=placed):
    cases = [Case(torch.tensor([1.0, 2.0, -3.0, 0.5], dtype=torch.float64))]
    return FunctionSpec(
        name="placed",
        function=function.apply,
        primal=reference,
        surrogate=reference,
        wrt=("w",),
        cases=lambda make: cases,
    )


def broken(report):
    return [v.law for v in report.verdicts if v.status not in (Status.HOLDS, Status.NOT_APPLICABLE)]


def test_a_sound_one_holds():
    assert broken(verify([spec(Placed)], laws=ASKED)) == []


def test_so_does_one_in_compressed_rows():
    assert broken(verify([spec(Rows, lambda w: placed(w).to_sparse_csr())], laws=ASKED[:1])) == []


def test_a_wrong_gradient_is_found_with_its_factor():
    report = verify([spec(Tripled)], laws=ASKED)
    (found,) = [v for v in report.violations if not v.finding.follows]
    assert (found.law, found.finding.likely) == ("vjp", "every element is off by the factor 1.5")


@pytest.mark.parametrize("function", [Dense, Rows])
def test_another_layout_is_found(function):
    verdict = verify([spec(function)], laws=ASKED[:1]).verdicts[0]
    assert verdict.status is Status.BROKEN
    assert verdict.finding.message == "the value has another layout"
    assert verdict.finding.expected == "torch.sparse_coo"


@pytest.mark.parametrize(("function", "status"), [(Placed, Status.HOLDS), (Tripled, Status.BROKEN)])
def test_an_audit_judges_it(function, status):
    (verdict,) = audit(function, ["(randn(4),)"], laws=[law for law in LAWS if law.name == "surrogate"]).report.verdicts
    assert verdict.status is status
