"""What an audit says where a transform is asked about: of modules, of rules to batch, of calls that raise there."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.autograd import Function

from gradspec import audit
from gradspec.findings import Bar, judge, sentence
from gradspec.law import Rank, Scope, Status

BATCH = ["(randn(2, 3),)"]


class Tripled(Function):
    """Three times the product, whose gradient leaves out the three once it is compiled."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return 3 * x * w

    @staticmethod
    def backward(ctx, y_bar):
        x, w = ctx.saved_tensors
        factor = 1 if torch.compiler.is_compiling() else 3
        return factor * y_bar * w, (factor * y_bar * x).sum_to_size(w.shape)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([0.5, 2.0, -1.0], dtype=torch.float64))

    def forward(self, x):
        return Tripled.apply(x, self.weight)


def statuses(report):
    return {verdict.law: verdict.status for verdict in report.verdicts}


def test_a_module_is_compiled_and_exported():
    laws = ["compile", "compile_grad", "compiled_autograd", "dynamic_shapes", "export"]

    report = audit(nn.Linear(3, 3).double(), BATCH, laws=laws, jobs=1).report

    assert statuses(report) == dict.fromkeys(laws, Status.HOLDS)


@pytest.mark.parametrize("law", ["compile", "compiled_autograd"])
def test_a_gradient_that_a_module_loses_when_it_is_compiled_is_found(law):
    verdict = audit(Scaled(), BATCH, laws=[law], jobs=1).report.verdicts[0]

    assert (verdict.status, verdict.finding.rank) == (Status.BROKEN, Rank.WRONG)
    assert "0.333" in verdict.finding.likely


class Counted(Function):
    """The mean of the positive elements, which asks how many there are for backward."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        kept = x > 0
        return (x * kept).sum() / kept.sum(), kept

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])
        ctx.count = int(output[1].sum())

    @staticmethod
    def backward(ctx, y_bar, _):
        return y_bar * ctx.saved_tensors[0] / ctx.count


class Unbatched(Counted):
    generate_vmap_rule = False


class CountedAsTensor(Counted):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])

    @staticmethod
    def backward(ctx, y_bar, _):
        (kept,) = ctx.saved_tensors
        return y_bar * kept / kept.sum()


def counted(x):
    return (x * (x > 0)).sum() / int((x > 0).sum())


@pytest.mark.parametrize(
    ("function", "status"),
    [
        (Counted, Status.BROKEN),
        (Unbatched, Status.NOT_PROMISED),
        (counted, Status.NOT_PROMISED),
        (CountedAsTensor, Status.HOLDS),
    ],
)
def test_who_sets_the_rule_promises_that_calls_are_batched(function, status):
    verdict = audit(function, ["(randn(5),)"], laws=["vmap"], jobs=1).report.verdicts[0]

    assert verdict.status is status
    assert verdict.finding.rank == (Rank.REFUSED if status is Status.BROKEN else "")


def test_a_mask_among_the_outputs_is_no_error_under_autocast():
    verdict = audit(CountedAsTensor, ["(randn(5),)"], laws=["autocast"], jobs=1).report.verdicts[0]

    assert verdict.status is Status.HOLDS


class Halves(Function):
    """A product that saves what autocast has rounded, and multiplies it in backward by float32."""

    @staticmethod
    def forward(ctx, x, w):
        y = (x @ w).relu()
        ctx.save_for_backward(x, w, y)
        return y

    @staticmethod
    def backward(ctx, y_bar):
        x, w, y = ctx.saved_tensors
        y_bar = y_bar * (y > 0)
        return y_bar @ w.T, x.T @ y_bar


@pytest.mark.parametrize(
    ("scopes", "said"),
    [
        ((), "Nothing is wrong in what was asked about. Not promised, as it raises there: training (`autocast`)."),
        (
            (Scope.FUNC,),
            "Nothing is wrong in what was asked about. Not promised, as it raises there: `torch.func` (`vmap`).",
        ),
    ],
)
def test_what_is_asked_about_and_raises_is_told_though_nobody_promises_it(scopes, said):
    report = audit(Halves, ["(randn(2, 3), randn(3, 4))"], laws=["autocast", "vmap", "vjp"], jobs=1).report

    assert sentence(judge(report, Bar(scopes=scopes))) == said


@torch.library.custom_op("gradspec_tests::place_and_double", mutates_args=())
def place_and_double(x: torch.Tensor, times: float) -> tuple[torch.Tensor, torch.Tensor]:
    return x.argmax(-1), times * x


@place_and_double.register_fake
def _(x, times):
    return x.new_empty(x.shape[:-1], dtype=torch.int64), torch.empty_like(x)


place_and_double.register_autograd(lambda ctx, _, y_bar: (y_bar * 2, None))


@torch.library.custom_op("gradspec_tests::place_and_another", mutates_args=())
def place_and_another(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.argmax(-1), 2 * x


@place_and_another.register_fake
def _(x):
    return x.new_empty(x.shape[:-1], dtype=torch.int64), torch.empty_like(x, dtype=torch.float32)


place_and_another.register_autograd(lambda ctx, _, y_bar: y_bar * 2)


@pytest.mark.parametrize(
    ("operator", "call", "status"),
    [
        (place_and_double, "(randn(3, 4), 2.0)", Status.HOLDS),
        (place_and_another, "(randn(3, 4),)", Status.BROKEN),
    ],
)
def test_an_index_before_a_value_is_no_error_of_the_operator(operator, call, status):
    verdict = audit(operator, [call], laws=["opcheck"], jobs=1).report.verdicts[0]

    assert verdict.status is status


@torch.library.custom_op("gradspec_tests::padded", mutates_args=())
def padded(x: torch.Tensor, size: int) -> torch.Tensor:
    return x if x.shape[-1] == size else nn.functional.pad(x, (0, size - x.shape[-1]))


def test_the_case_that_raises_is_the_one_that_is_named():
    calls = ["(randn(2, 3), 4)", "(randn(2, 4), 4)"]

    verdict = audit(padded, calls, jobs=1).report.verdicts[0]

    assert verdict.case == calls[1]
    assert verdict.finding.likely == "return a copy of an argument, as `x.clone()`"
