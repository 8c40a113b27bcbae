"""An audit of a function that takes half precision only: small steps vanish there, and large ones show what is lost."""

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.law import Rank, Status
from gradspec.laws import LAWS

CASE = "(randn(3, dtype={0}), randn(3, dtype={0}))"


class Product(Function):
    @staticmethod
    def forward(ctx, x, w):
        if x.dtype not in (torch.bfloat16, torch.float16):
            raise TypeError("wants half precision")
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, y_bar):
        x, w = ctx.saved_tensors
        return y_bar * w, y_bar * x


class TwiceInX(Product):
    @staticmethod
    def backward(ctx, y_bar):
        x_bar, w_bar = Product.backward(ctx, y_bar)
        return 2 * x_bar, w_bar


class Lost(Product):
    @staticmethod
    def backward(ctx, y_bar):
        x_bar, w_bar = Product.backward(ctx, y_bar)
        return x_bar.detach(), w_bar.detach()


class Cut(Product):
    @staticmethod
    def backward(ctx, y_bar):
        x, w = ctx.saved_tensors
        return y_bar * w.detach(), y_bar * x.detach()


def verdicts(function, dtype):
    laws = [law for law in LAWS if law.name in ("surrogate", "second_order")]
    return {v.law: v for v in audit(function, [CASE.format(dtype)], laws=laws).report.verdicts}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_sound_function_holds(dtype):
    found = verdicts(Product, dtype)

    assert {law: v.status for law, v in found.items()} == dict.fromkeys(found, Status.HOLDS)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(("function", "law"), [(TwiceInX, "surrogate"), (Lost, "second_order"), (Cut, "second_order")])
def test_what_is_wrong_by_much_is_broken(function, law, dtype):
    found = verdicts(function, dtype)[law]

    assert (found.status, found.finding.rank) == (Status.BROKEN, Rank.WRONG)
