"""Where in the code: the line of an error that backward raises, and the operation that makes a gradient NaN."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.autograd import Function

from gradspec import Case, FunctionSpec, Status, Supports, audit, verify
from gradspec.findings import findings
from gradspec.laws import LAWS
from gradspec.render import failure_text

LINES = Path(__file__).read_text(encoding="utf-8").splitlines()
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
    line = next(n for n, said in enumerate(LINES, 1) if said.endswith("# the line"))

    assert verdict.finding.details["place"] == f"test_places.py:{line}, in backward"
    assert re.search(rf"^ +at +test_places\.py:{line}, in backward$", failure_text(verdict), re.MULTILINE)


def test_an_error_of_a_refusal_that_is_promised_has_no_line_in_a_record():

    spec = of(lambda x: Raises.apply(x), lambda x: x.sin())
    report = verify([spec], [law for law in LAWS if law.capability and law.cost == "ms"])

    assert all("place" not in v.finding.details for v in report.verdicts if not v.finding.is_failure)


def focal(x):
    p = x.sigmoid()
    return (1 - p) ** 0.5 * (p + 1e-8).log()  # the power


def test_a_gradient_that_is_nan_where_the_value_is_finite_is_one_finding_with_its_operation_and_line():
    saturated = torch.tensor([100.0, 0.5], dtype=torch.float64)
    laws = [law for law in LAWS if law.judges("function") and law.cost == "ms"]
    first, *rest = findings(audit(focal, ["(tensor([100.0, 0.5]),)"], laws=laws).report)
    declared = verify([of(focal, lambda x: focal(x), saturated)], VJP)
    line = next(n for n, said in enumerate(LINES, 1) if said.endswith("# the power"))

    assert "is NaN in 1 of 2 elements, and the value is finite" in first.verdict.finding.message
    assert first.verdict.finding.reason.evidence == {
        "operation": "PowBackward0",
        "place": f"test_places.py:{line}, in focal",
    }
    assert not rest
    assert not declared.failures, "a spec may declare it"


class Undefined(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 0

    @staticmethod
    def backward(ctx, v):
        return v * 0 / 0  # 0 / 0


def applied(x):
    return Undefined.apply(x)  # the call


@pytest.mark.parametrize(("function", "called"), [(Undefined, ""), (applied, "the call")])
def test_a_line_of_what_calls_an_audit_is_no_line_of_the_function(function, called):
    first, *_ = findings(audit(function, ["(tensor([100.0, 0.5]),)"], laws=["surrogate"]).report)
    line = next(n for n, said in enumerate(LINES, 1) if said.endswith(f"# {called or 'the power'}"))
    place = f", called at test_places.py:{line}, in applied," if called else ""

    inside = next(n for n, said in enumerate(LINES, 1) if said.endswith("# 0 / 0"))
    said = f"the backward of Undefined{place} makes NaN first: aten.div, test_places.py:{inside}, in backward"
    assert first.verdict.finding.reason.words == said


class Unwritten(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, v):
        x_bar = torch.empty_like(v)
        x_bar[1:] = 2 * v[1:]
        return x_bar


def test_memory_that_nobody_wrote_is_one_finding():
    x = torch.randn(3, 50, dtype=torch.float64)
    kept = [torch.full((3, 50), 7.5, dtype=torch.float64) for _ in range(64)]
    del kept  # so that new memory is not zero
    laws = [law for law in LAWS if law.judges("function") and law.cost == "ms" and not law.alone]
    found = findings(verify([of(Unwritten.apply, lambda x: 2 * x, x)], laws, isolate=False))

    assert [one.verdict.finding.reason.kind for one in found if one.rank == "wrong"] == ["unwritten memory"]
    said = re.search(r"gradient of `x` is memory that nobody wrote in (\d+) of 150 ", found[0].verdict.finding.message)
    assert said is not None
    assert 40 <= int(said[1]) <= 50, "a number that is there may be the same twice"


def test_noise_is_one_finding_and_what_is_wrong_without_it_is_another():
    def noisy(factor):
        class Noisy(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mask = torch.rand_like(x)
                return x * ctx.mask

            @staticmethod
            def backward(ctx, v):
                return factor * v * ctx.mask

        return of(Noisy.apply, lambda x: x * torch.rand_like(x))

    laws = [law for law in LAWS if law.name in ("primal", "vjp", "layout", "checkpoint", "declared_draws")]
    (factor,) = findings(verify([noisy(0.5)], laws, isolate=False))
    hidden = replace(noisy(1), primal=lambda x: x / 2, surrogate=lambda x: x / 2)
    (draws,) = findings(verify([hidden], laws, isolate=False))

    assert findings(verify([noisy(1)], laws, isolate=False)) == [], "its primal draws, and so says that it does"
    assert factor.verdict.law == "vjp"
    assert (draws.verdict.law, {"primal", "vjp"} <= set(draws.follows)) == ("declared_draws", True)


@pytest.mark.parametrize("function", [torch.log, torch.sqrt, torch.atanh])
def test_a_plain_function_at_an_infinity_is_not_accused(function):
    laws = [law for law in LAWS if law.name in ("primal", "adjoint", "autocast", "cotangent_linearity")]
    report = audit(lambda x: function(x), ["(tensor([0.0, 1.0, 0.5]),)"], laws=laws).report

    assert [v for v in report.verdicts if v.status is Status.BROKEN] == []


class Overflown(Function):
    """Its backward takes the exponential of large numbers, and divides one infinity by another."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sigmoid()

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        e = (-x).exp()
        return y_bar * (e / (1 + e).square())


def test_what_overflows_before_it_becomes_nan_is_named():
    (verdict,) = audit(Overflown, ["(tensor([-800.0, 0.5]),)"], laws=["surrogate"], jobs=1).report.verdicts

    number = next(k for k, line in enumerate(Path(__file__).read_text().splitlines(), 1) if "e = (-x).exp()" in line)
    words = verdict.finding.likely
    assert f"aten.div, test_places.py:{number + 1}, in backward, of the infinity that " in words
    assert f"aten.exp, test_places.py:{number}, in backward, makes" in words
