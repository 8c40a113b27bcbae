"""A sum that backward forgets is named without a reference, however small some of the right numbers are."""

import pytest
import torch
from torch.autograd import Function

from gradspec import audit


class Attention(Function):
    """Takes what each row of probabilities keeps in sum for nothing."""

    @staticmethod
    def forward(ctx, q, k, v):
        p = torch.softmax(q @ k.mT, -1)
        ctx.save_for_backward(q, k, v, p)
        return p @ v

    @staticmethod
    def backward(ctx, y_bar):
        q, k, v, p = ctx.saved_tensors
        s_bar = p * (y_bar @ v.mT)
        return s_bar @ k, s_bar.mT @ q, p.mT @ y_bar


class LogSoftmax(Function):
    """Hands its cotangent on."""

    @staticmethod
    def forward(ctx, x):
        return torch.log_softmax(x, -1)

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar


def likely(function, call):
    (finding,) = (v.finding for v in audit(function, [call], laws=["surrogate"]).report.failures)
    return finding.likely


@pytest.mark.parametrize("batch", ["", "6, "])
def test_attention_without_the_sum_of_its_rows(batch):
    # Drawn anew, a row of probabilities has numbers that are a millionth of the largest.
    said = likely(Attention, f"(randn({batch}3, 4), randn({batch}5, 4), randn({batch}5, 2))")

    term = "p * (y_bar @ v.mT)"
    assert said.startswith(f"right with `{term} - p * ({term}).sum(-1, keepdim=True)` in place of `{term}`")


def test_a_logarithm_of_a_softmax_without_its_sum():
    assert likely(LogSoftmax, "(randn(3, 4),)") == (
        "right once the sum of the cotangent over dimension 1 times `exp` of the output is taken away: a term is "
        "missing, or one too many"
    )


class Smoothed(Function):
    """The loss of the rows that count; its gradient is a mean over all rows."""

    @staticmethod
    def forward(ctx, x, target):
        counts = target >= 0
        loss = -(x.log_softmax(-1).gather(1, target.clamp(min=0)[:, None])[:, 0] * counts).sum() / counts.sum()
        x_bar = (x.softmax(-1) - torch.nn.functional.one_hot(target.clamp(min=0), x.shape[1])) * counts[:, None]
        ctx.save_for_backward(x_bar / len(target))
        return loss

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar * ctx.saved_tensors[0], None


def test_one_factor_is_said_before_an_index_that_repeats():
    said = likely(Smoothed, "(randn(6, 7), tensor([1, 0, -100, 3, 6, -100]))")

    assert "repeats" not in said
    assert "0.66" in said or "right with" in said
