"""What an audit does not hold against a function: a generator on ctx, a dtype of nobody, zeros without memory."""

import pytest
import torch
from torch import nn
from torch.autograd import Function

from gradspec import audit
from gradspec.law import Status
from gradspec.laws import LAWS
from gradspec.laws.tensor.support._call import like


def judged(function, case, law):
    found = audit(function, [case], laws=[one for one in LAWS if one.name == law])
    (verdict,) = found.report.of(law=law)
    return verdict


class Kept(Function):
    """Keeps what it makes on ctx: the state of a generator, or the bytes of a tensor."""

    made = staticmethod(torch.get_rng_state)

    @classmethod
    def forward(cls, ctx, x):
        ctx.kept = cls.made()
        return 2 * x

    @staticmethod
    def backward(ctx, y_bar):
        return 2 * y_bar


class KeepsBytes(Kept):
    made = staticmethod(lambda: torch.zeros(16, dtype=torch.uint8))


def test_the_state_of_a_generator_may_be_kept_on_ctx():
    assert judged(Kept, "(randn(3),)", "ctx_clean").status is Status.HOLDS
    assert judged(KeepsBytes, "(randn(3),)", "ctx_clean").status is Status.BROKEN


class DropsTheStrided(Function):
    """A strided cotangent is read as if it were contiguous."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar.as_strided(y_bar.shape, torch.empty(y_bar.shape).stride()).clone()


def test_a_misread_cotangent_shows_in_a_plain_pass_and_what_is_expected_is_right():
    verdict = judged(DropsTheStrided, "(randn(3, 2),)", "cotangent_layout")

    assert verdict.status is Status.BROKEN
    assert "(transposed cotangent)" in verdict.finding.message
    (v,) = like((torch.ones(3, 2, dtype=torch.float64),), 0)
    assert float(verdict.finding.expected) in v.flatten().tolist()
    assert verdict.finding.index
    place = tuple(int(k) for k in verdict.finding.index.strip("[]").split(","))
    assert float(verdict.finding.expected) == float(v[place])


class Double(nn.Module):
    """Reads a matrix in float64 in backward, beside its parameters."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(3, dtype=torch.float64))
        self.again = [self.weight]

    def forward(self, x):
        return _Product.apply(x, self.weight, self.again[0].detach())


class _Product(Function):
    @staticmethod
    def forward(ctx, x, w, again):
        ctx.save_for_backward(x, again)
        return x @ w

    @staticmethod
    def backward(ctx, y_bar):
        x, again = ctx.saved_tensors
        return y_bar @ again.T, x.T @ y_bar, None


def test_a_dtype_that_nobody_asked_for_is_not_held_against_a_function():
    verdict = judged(Double(), "(randn(4, 3),)", "precision")

    assert verdict.status is Status.NOT_APPLICABLE
    assert "nobody has asked for float32, in which it raises" in verdict.finding.message


def test_second_derivatives_with_zeros_that_have_no_memory_do_not_end_the_process():
    verdict = judged(
        lambda x, t: nn.functional.mse_loss(x, t.detach()), "(randn(4, 3), randn(4, 3))", "declared_writes"
    )

    assert verdict.status is Status.HOLDS


class OfTheScaleAlone(Function):
    """Refuses a gradient of `x`."""

    @staticmethod
    def forward(ctx, x, scale):
        if ctx.needs_input_grad[0]:
            raise RuntimeError("no gradient of x")
        ctx.save_for_backward(x)
        return x * scale

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return None, (y_bar * x).sum()


def test_a_gradient_that_is_refused_is_not_asked_for_where_the_call_marks_others():
    verdict = judged(OfTheScaleAlone, (torch.randn(3), torch.randn((), requires_grad=True)), "surrogate")
    assert verdict.status is Status.HOLDS
    refused = judged(OfTheScaleAlone, (torch.randn(3), torch.randn(())), "primal")
    assert "no gradient of x" in refused.finding.message


class Normalised(Function):
    """Runs a module that is an argument, and can be told to run it in backward too."""

    @staticmethod
    def forward(ctx, x, module, again):
        ctx.rest = module, again
        with torch.no_grad():
            return module(x) * 0 + x

    @staticmethod
    def backward(ctx, y_bar):
        module, again = ctx.rest
        if again:
            module(y_bar)
        return y_bar, None, None


@pytest.mark.parametrize(("again", "status"), [(False, Status.HOLDS), (True, Status.BROKEN)])
def test_forward_moves_the_statistics_of_a_module_that_is_an_argument_and_backward_does_not(again, status):
    verdict = judged(Normalised, (torch.randn(3, 2), nn.BatchNorm1d(2), again), "declared_writes")
    assert verdict.status is status


class Smoothed(Function):
    """Writes to a table that it has made; torch keeps the table of a first run for the second, which writes to it."""

    @staticmethod
    def forward(ctx, x):
        weight = torch.full_like(x, 0.1)
        weight.scatter_add_(1, torch.tensor([[1], [0]]), torch.full_like(x[:, :1], 0.9))
        ctx.save_for_backward(x, weight)
        return (weight * x.sin()).sum()

    @staticmethod
    def backward(ctx, y_bar):
        x, weight = ctx.saved_tensors
        return y_bar * weight * x.cos()


def test_a_result_that_forward_writes_to_is_not_saved_by_a_checkpoint():
    assert judged(Smoothed, "(randn(2, 3),)", "selective_checkpoint").status is Status.HOLDS


def masked(x, mask):
    return x.masked_fill(mask, -torch.inf)


class Masked(Function):
    @staticmethod
    def forward(ctx, x, mask):
        ctx.save_for_backward(mask)
        return masked(x, mask)

    @staticmethod
    def backward(ctx, y_bar):
        (mask,) = ctx.saved_tensors
        return y_bar.masked_fill(mask, 0), None


class HalfMasked(Masked):
    @staticmethod
    def backward(ctx, y_bar):
        return Masked.backward(ctx, y_bar)[0] / 2, None


MASK = "tensor([[False, True, False], [True, False, False]])"


@pytest.mark.parametrize("how", [{}, {"reference": masked}])
@pytest.mark.parametrize(
    ("function", "call"),
    [(torch.log, "(tensor([0.0, 1.0, 2.0]),)"), (Masked, f"(randn(2, 3), {MASK})"), (masked, f"(randn(2, 3), {MASK})")],
)
def test_a_value_that_is_infinite_in_places_is_judged_where_it_is_not(function, call, how):
    how = how if function is Masked else {}
    laws = ["surrogate", "compile_vmap"]

    assert {v.status for v in audit(function, [call], laws=laws, **how).report.verdicts} == {Status.HOLDS}


def test_a_wrong_gradient_beside_an_infinite_value_is_found():
    (verdict,) = audit(HalfMasked, [f"(randn(2, 3), {MASK})"], laws=["surrogate"]).report.verdicts

    assert verdict.status is Status.BROKEN


class Unwritten(Function):
    """Writes its gradient for a contiguous cotangent alone."""

    @staticmethod
    def forward(ctx, x):
        return x.sin()

    @staticmethod
    def backward(ctx, y_bar):
        x_bar = torch.empty_like(y_bar)
        return x_bar.copy_(y_bar) if y_bar.is_contiguous() else x_bar


def test_memory_that_nobody_wrote_for_a_strided_cotangent_is_said_as_that():
    finding = judged(Unwritten, "(randn(4, 3),)", "cotangent_layout").finding

    assert finding.reason is not None
    assert finding.reason.kind == "unwritten memory"
