"""A mean over what an index leaves out too: the divisor is the cause, and no mask is missing."""

import pytest
import torch
from torch.autograd import Function

from gradspec import CheckError, audit, check
from gradspec.laws import LAWS

SURROGATE = [law for law in LAWS if law.name == "surrogate"]


class Loss(Function):
    """Cross entropy over the targets that are not -100; its backward divides by the number of all."""

    @staticmethod
    def forward(ctx, logits, target):
        valid = target != -100
        chosen = torch.nn.functional.one_hot(target.where(valid, 0), logits.shape[1]) * valid[:, None]
        log_p = logits.log_softmax(1)
        ctx.save_for_backward(log_p, chosen, valid)
        return -(chosen * log_p).sum() / valid.sum()

    @staticmethod
    def backward(ctx, y_bar):
        log_p, chosen, valid = ctx.saved_tensors
        return y_bar * (log_p.exp() * valid[:, None] - chosen) / len(chosen), None


class Unmasked(Loss):
    """The same, with the right divisor, and a gradient for what is left out."""

    @staticmethod
    def backward(ctx, y_bar):
        log_p, chosen, valid = ctx.saved_tensors
        return y_bar * (log_p.exp() - chosen) / valid.sum(), None


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (Loss, "off by the factor 0.6"),
        (Unmasked, "right where no number of `target` is negative: backward lacks the mask of what it stands for"),
    ],
)
def test_a_divisor_is_told_from_a_mask(function, words):
    (verdict,) = audit(function, ["(randn(5, 4), tensor([0, -100, 3, 1, -100]))"], laws=SURROGATE).report.verdicts

    assert words in verdict.finding.likely


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_no_mask_is_called_missing_in_any_dtype(dtype):
    logits = torch.randn(5, 4, generator=torch.Generator().manual_seed(0)).to(dtype).requires_grad_()

    with pytest.raises(CheckError) as caught:
        check(
            Loss,
            (logits, torch.tensor([0, -100, 3, 1, -100])),
            primal=lambda logits, target: torch.nn.functional.cross_entropy(logits, target),
            laws=["vjp"],
        )

    assert "mask" not in str(caught.value)
