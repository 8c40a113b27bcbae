"""Mistakes of recursions, quantiles, segments and samples, each with the line that mends it."""

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.findings import findings


class Middle(Function):
    """The mean of the two numbers in the middle of a row, to which backward writes where they are one."""

    @staticmethod
    def forward(ctx, x):
        order = x.argsort(-1)
        ctx.low, ctx.high = ((x.shape[-1] - 1) // 2, x.shape[-1] // 2)
        ctx.save_for_backward(order)
        ctx.size = x.shape
        return (x.gather(-1, order[:, [ctx.low]]) + x.gather(-1, order[:, [ctx.high]])) / 2

    @staticmethod
    def backward(ctx, y_bar):
        (order,) = ctx.saved_tensors
        x_bar = y_bar.new_zeros(ctx.size).scatter(-1, order[:, [ctx.low]], y_bar / 2)
        return x_bar.scatter(-1, order[:, [ctx.high]], y_bar / 2)


class Deviation(Function):
    """A row over its deviation, of which backward computes that of a sample."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x / x.var(-1, keepdim=True, correction=0).sqrt()

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        s = x.var(-1, keepdim=True).sqrt()
        return y_bar / s - (x - x.mean(-1, keepdim=True)) * (y_bar * x).mean(-1, keepdim=True) / s**3


class Products(Function):
    """The products of neighbours in both directions, of which backward reads the wrong column."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x[:, :-1] * x[:, 1:]

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        x_bar = torch.zeros_like(x)
        for k in range(y_bar.shape[1]):
            x_bar[:, k] += y_bar[:, k] * x[:, k]
            x_bar[:, k + 1] += y_bar[:, k] * x[:, k]
        return x_bar


class Totals(Function):
    """The squares of segments, whose backward takes a running sum apart, as if the index were sorted."""

    @staticmethod
    def forward(ctx, x, index):
        ctx.save_for_backward(x, index)
        return x.new_zeros(3).index_add(0, index, x).square()

    @staticmethod
    def backward(ctx, y_bar):
        x, index = ctx.saved_tensors
        ends = torch.bincount(index, minlength=3).cumsum(0)
        runs = torch.cat((x.new_zeros(1), x.cumsum(0)))
        totals = runs[ends] - runs[torch.cat((ends.new_zeros(1), ends[:-1]))]
        return (2 * y_bar * totals)[index], None


class Hits(Function):
    """The distance to a sphere, with a mask that backward has saved and does not read."""

    @staticmethod
    def forward(ctx, x):
        hit = x.abs() < 2
        root = (4 - x * x).clamp(min=0).sqrt()
        y = torch.where(hit, 3 + root, torch.zeros_like(x))
        ctx.save_for_backward(x, y, root, hit)
        return y

    @staticmethod
    def backward(ctx, y_bar):
        x, y, root, hit = ctx.saved_tensors  # noqa: RUF059  # the mistake
        return y_bar * -x / root.clamp(min=0.1)


@pytest.mark.parametrize(
    ("function", "call", "says"),
    [
        (Middle, "(randn(3, 5),)", "right with `x_bar.scatter_add("),
        (Deviation, "(randn(3, 5),)", "right with `x.var(-1, keepdim=True, correction=0)` in place of"),
        (Products, "(randn(2, 5),)", "right with `x[:, k + 1]` in place of `x[:, k]`"),
        (Totals, "(randn(6), tensor([0, 2, 0, 1, 2, 2]))", "right where `index` is sorted, and wrong where it is not"),
        (Hits, "(tensor([0.5, -1.0, 2.5, -3.0]),)", "* hit` in place of"),
    ],
)
def test_the_mistake_is_named(function, call, says):
    report = audit(function, [call], laws=["surrogate"]).report

    assert says in findings(report)[0].verdict.finding.likely


class Padded(Function):
    """Columns that backward adds to a view of zeros in the order of its argument."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.reshape(-1)[:3]

    @staticmethod
    def backward(ctx, y_bar):
        x_bar = torch.zeros_like(ctx.saved_tensors[0])
        x_bar.view(-1)[:3] += y_bar
        return x_bar


def test_a_view_that_is_written_to_is_not_to_be_reshaped():
    (verdict,) = audit(Padded, ["(randn(2, 4),)"], laws=["layout"]).report.verdicts

    assert verdict.finding.likely.startswith("view() of memory in another order, which is written to")
