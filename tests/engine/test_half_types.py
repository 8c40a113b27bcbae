"""What a function adds up or saves in a half type is found by doing it in float32, and its line is named."""

from pathlib import Path

import pytest
import torch
from torch.autograd import Function

from gradspec import FunctionSpec, audit, verify
from gradspec.findings import findings, rank_of
from gradspec.law import Rank, Status


class Embedding(Function):
    """Rows by index; the gradient of each row is added up token by token."""

    least = torch.bfloat16

    @staticmethod
    def forward(ctx, weight, index):
        ctx.save_for_backward(index)
        ctx.rows = len(weight)
        return weight[index]

    @classmethod
    def backward(cls, ctx, y_bar):
        (index,) = ctx.saved_tensors
        kept = torch.promote_types(y_bar.dtype, cls.least)
        total = torch.zeros(ctx.rows, y_bar.shape[1], dtype=kept)
        cls.add(total, index, y_bar.to(kept))
        return total.to(y_bar.dtype), None

    @staticmethod
    def add(total, index, terms):
        for k in range(len(index)):
            total[index[k]] += terms[k]


class EmbeddingIn32(Embedding):
    least = torch.float32


class EmbeddingAtOnce(Embedding):
    @staticmethod
    def add(total, index, terms):
        total.index_put_((index,), terms, True)


class EmbeddingWithNewTotals(Embedding):
    """Makes a tensor anew for each token, scaled and scaled back."""

    @staticmethod
    def add(total, index, terms):
        kept = torch.zeros_like(total)
        for k in range(len(index)):
            one = torch.zeros_like(total)
            one[index[k]] = terms[k]
            kept = (kept * 2 + one * 2) / 2
        total.copy_(kept)


class EmbeddingInTurn(Embedding):
    """Adds each row once: a loop, and no sum."""

    @staticmethod
    def add(total, index, terms):
        for row in range(len(total)):
            total[row] += terms[index == row].sum(0)


class Attention(Function):
    """Softmax attention that saves the logarithm of its sums, as it is computed."""

    @staticmethod
    def kept(logsumexp, dtype):
        return logsumexp

    @classmethod
    def forward(cls, ctx, q, k, v):
        scores = q.float() @ k.float().mT
        logsumexp = scores.logsumexp(-1, keepdim=True)
        y = ((scores - logsumexp).exp() @ v.float()).to(q.dtype)
        ctx.save_for_backward(q, k, v, y, cls.kept(logsumexp, q.dtype))
        return y

    @staticmethod
    def backward(ctx, y_bar):
        q, k, v, y, logsumexp = (t.float() for t in ctx.saved_tensors)
        y_bar, dtype = y_bar.float(), ctx.saved_tensors[0].dtype
        p = (q @ k.mT - logsumexp).exp()
        s_bar = p * (y_bar @ v.mT - (y_bar * y).sum(-1, keepdim=True))
        return (s_bar @ k).to(dtype), (s_bar.mT @ q).to(dtype), (p.mT @ y_bar).to(dtype)


class AttentionSavedInHalf(Attention):
    @staticmethod
    def kept(logsumexp, dtype):
        return logsumexp.to(dtype)


TOKENS = "(randn(4, 8, dtype=bfloat16), randint(0, 4, (512,)))"
HEADS = "(randn(2, 32, 16, dtype=bfloat16), randn(2, 32, 16, dtype=bfloat16), randn(2, 32, 16, dtype=bfloat16))"


def finding_of(function, call, seed=0):
    (verdict,) = audit(function, [call], laws=["surrogate"], jobs=1, seed=seed).report.of(law="surrogate")
    return verdict.finding


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "call", "words", "line"),
    [
        (Embedding, TOKENS, "a sum that is carried in bfloat16", "total[index[k]] += terms[k]"),
        (
            EmbeddingAtOnce,
            TOKENS,
            "a sum that is carried in bfloat16",
            "total.index_put_((index,), terms, True)",
        ),
        (EmbeddingWithNewTotals, TOKENS, "a sum that is carried in bfloat16", "kept = (kept * 2 + one * 2) / 2"),
        (AttentionSavedInHalf, HEADS, "what forward has in float32 is saved in bfloat16", "return logsumexp.to(dtype)"),
    ],
)
def test_the_line_that_loses_digits_is_named(function, call, words, line):
    finding = finding_of(function, call)

    assert finding.status is Status.BROKEN
    number = [text.strip() for text in Path(__file__).read_text(encoding="utf-8").splitlines()].index(line) + 1
    assert finding.reason.words == f"{words} (test_half_types.py:{number})"
    assert finding.reason.evidence["closer"] > 2


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.parametrize(("function", "call"), [(EmbeddingIn32, TOKENS), (EmbeddingInTurn, TOKENS), (Attention, HEADS)])
def test_what_float32_would_not_make_closer_holds(function, call, seed):
    assert finding_of(function, call, seed).status is Status.HOLDS


@pytest.mark.slow
def test_a_call_in_half_precision_is_not_blamed_for_the_digits_of_float32():
    """With terms that cancel a sum in float32 is off by more than its unit, in a call that keeps three digits."""
    call = "(randn(4, 8, dtype=bfloat16), randint(0, 4, (2048,)))"

    assert finding_of(EmbeddingIn32, call).status is Status.HOLDS


class Gated(Function):
    """silu(a) * b; the slope has a product where it should have a difference."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return torch.nn.functional.silu(a) * b

    @staticmethod
    def backward(ctx, y_bar):
        a, b = ctx.saved_tensors
        s = torch.sigmoid(a)
        return y_bar * b * s * (1 + a * s), y_bar * a * s


def likely(function, call, reference):
    (verdict,) = audit(function, [call], laws=["vjp"], reference=reference).report.failures
    return verdict.finding.likely


def test_with_a_reference_the_line_that_loses_digits_is_named_too():
    said = likely(Embedding, TOKENS, lambda weight, index: weight[index])

    assert said.startswith("a sum that is carried in bfloat16 (test_half_types.py:")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_with_a_reference_a_mistake_is_explained_as_in_float64(dtype):
    call = f"(randn(3, 8, dtype={dtype}), randn(3, 8, dtype={dtype}))"
    said = likely(Gated, call, lambda a, b: torch.nn.functional.silu(a) * b)

    assert said.startswith("right with `a - a * s` in place of `a * s` (test_half_types.py:")


class OuterSum(Function):
    """A product of matrices in float32, whose gradient of `w` is added up in the type of the arguments."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return (x.float() @ w.float()).to(x.dtype)

    @staticmethod
    def backward(ctx, y_bar):
        x, w = ctx.saved_tensors
        w_bar = torch.zeros_like(w)
        for k in range(len(x)):
            w_bar += torch.outer(x[k], y_bar[k])
        return (y_bar.float() @ w.float().T).to(x.dtype), w_bar


def test_what_float32_rounds_in_float64_is_no_cause_in_a_half_type_and_one_sum_is_one_finding():
    call = "(randn(64, 3, dtype=bfloat16), randn(3, 5, dtype=bfloat16))"
    report = audit(OuterSum, [call], laws=["vjp", "surrogate"], reference=torch.matmul).report
    (found,) = findings(report)

    assert found.laws == ["vjp", "surrogate"]
    assert found.verdict.finding.likely.startswith("a sum that is carried in bfloat16 (test_half_types.py:")


class CumulativeSum(torch.autograd.Function):
    """A cumulative sum that is carried in float32."""

    @staticmethod
    def forward(ctx, x):
        return x.float().cumsum(0).to(x.dtype)

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar.float().flip(0).cumsum(0).flip(0).to(y_bar.dtype)


class ReadsTheMemory(CumulativeSum):
    @staticmethod
    def backward(ctx, y_bar):
        packed = torch.as_strided(y_bar, y_bar.shape, (y_bar.shape[1], 1)) if y_bar.stride()[0] == 1 else y_bar
        return CumulativeSum.backward(ctx, packed)


def in_the_type_of_its_argument(x):
    sums, total = [], torch.zeros_like(x[0])
    for row in x:
        total = total + row
        sums.append(total)
    return torch.stack(sums)


@pytest.mark.parametrize(("function", "status"), [(CumulativeSum, Status.HOLDS), (ReadsTheMemory, Status.BROKEN)])
def test_a_reference_that_adds_up_in_a_half_type_accuses_no_layout(function, status):
    def cases(make):
        yield make(600, 4).abs().bfloat16()

    spec = FunctionSpec(name="sums", function=function.apply, primal=in_the_type_of_its_argument, cases=cases)
    report = verify([spec], ["primal", "vjp", "cotangent_layout", "layout", "retained_graph"])
    broken = {verdict.law for verdict in report.verdicts if verdict.status is Status.BROKEN}
    assert broken == (set() if status is Status.HOLDS else {"cotangent_layout"})


def test_the_rounding_of_a_half_type_is_no_other_layout_in_the_second_order():
    class Normed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            r = (x.float().square().mean(-1, keepdim=True) + 1e-5).rsqrt()
            ctx.save_for_backward(x, weight, r)
            return (x.float() * r * weight.float()).to(x.dtype)

        @staticmethod
        def backward(ctx, y_bar):
            x, weight, r = ctx.saved_tensors
            normed, bar = x.float() * r, y_bar.float() * weight.float()
            x_bar = (r * (bar - normed * (bar * normed).mean(-1, keepdim=True))).to(x.dtype)
            weight_bar = torch.zeros_like(weight)
            for row in y_bar * normed.to(x.dtype):
                weight_bar += row
            return x_bar, weight_bar

    call = "(randn(600, 6, dtype=float16), randn(6, dtype=float16))"
    (verdict,) = audit(Normed, [call], laws=["cotangent_layout"]).report.verdicts
    assert verdict.status is Status.HOLDS


class SumsInItsDtype(Function):
    """A softmax whose denominator is added up one number at a time, in the dtype of the call."""

    @staticmethod
    def forward(ctx, x):
        total = torch.zeros_like(x[:, :1])
        for column in x.exp().split(1, -1):
            total = total + column
        p = (x.float().exp() / total).to(x.dtype)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, p_bar):
        p, p_bar = ctx.saved_tensors[0].float(), p_bar.float()
        return (p * (p_bar - (p_bar * p).sum(-1, keepdim=True))).to(ctx.saved_tensors[0].dtype)


def test_a_value_that_is_off_by_a_twentieth_and_more_in_a_half_type_is_wrong():
    call = "(randn(2, 700, dtype=bfloat16, requires_grad=True),)"
    (verdict,) = audit(SumsInItsDtype, [call], laws=["surrogate"], jobs=1).report.verdicts

    assert "added up in bfloat16" in verdict.finding.message
    assert rank_of(verdict) is Rank.WRONG
