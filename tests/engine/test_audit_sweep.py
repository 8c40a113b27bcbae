"""The sweep of an audit: other sizes, values and options of a call, and the smallest that shows what is wrong."""

import inspect

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec._audit._case_syntax import read_case
from gradspec._audit._sweep import smaller, variants
from gradspec.law import Status
from gradspec.laws import LAWS

SURROGATE = [law for law in LAWS if law.name == "surrogate"]
TILE = 8


class Tiled(Function):
    """Twice a row, tile by tile."""

    drops_tail = False

    @staticmethod
    def forward(ctx, x, flip=False):
        ctx.flip = flip
        return -2 * x if flip else 2 * x

    @classmethod
    def backward(cls, ctx, y_bar):
        found = torch.zeros_like(y_bar)
        length = y_bar.shape[-1]
        for start in range(0, length - length % TILE if cls.drops_tail and length > TILE else length, TILE):
            found[..., start : start + TILE] = (-2 if ctx.flip else 2) * y_bar[..., start : start + TILE]
        return found, None


class DropsTail(Tiled):
    drops_tail = True


class ForgetsTheOption(Tiled):
    @classmethod
    def backward(cls, ctx, y_bar):
        return 2 * y_bar, None


class Overflows(Function):
    """The logarithm of a sum of exponentials, without its maximum taken off in backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.logsumexp(-1)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar.unsqueeze(-1) * x.exp() / x.exp().sum(-1, keepdim=True)


class OfOneBatch(Function):
    """The gradient of a weight, summed over the first dimension only."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, y_bar):
        x, w = ctx.saved_tensors
        return y_bar * w, (y_bar * x).sum(0).reshape(-1, *w.shape)[0]


class AlignsAbove(Function):
    """A product of a lower triangle, which backward takes to begin in the other corner."""

    @staticmethod
    def forward(ctx, q, k):
        ctx.save_for_backward(q, k)
        return (q @ k.T).tril(len(k) - len(q))

    @staticmethod
    def backward(ctx, y_bar):
        q, k = ctx.saved_tensors
        y_bar = y_bar.tril()
        return y_bar @ k, y_bar.T @ q


class Leaks(Function):
    """A mask of the output, whose sign is that of the argument for a positive slope."""

    @staticmethod
    def forward(ctx, x, slope):
        y = torch.where(x > 0, x, slope * x)
        ctx.save_for_backward(y)
        ctx.slope = slope
        return y

    @staticmethod
    def backward(ctx, y_bar):
        (y,) = ctx.saved_tensors
        return torch.where(y > 0, y_bar, ctx.slope * y_bar), None


def swept(function, call):
    found = audit(function, [call], laws=SURROGATE, sweep=True)
    wrong = [verdict.case for verdict in found.report.verdicts if verdict.status is Status.BROKEN]
    (said,) = [remark for remark in found.remarks if remark.startswith("By the sweep")]
    return wrong, said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "call", "wrong"),
    [
        (DropsTail, "(randn(2, 8),)", "(randn(1, 9))"),
        (ForgetsTheOption, "(randn(3),)", "(randn(1), True)"),
        (Overflows, "(randn(2, 3),)", "(randn(1, 1) + 1000)"),
        (OfOneBatch, "(randn(2, 3), randn(3))", "(randn(2, 2, 1), randn(1))"),
        (AlignsAbove, "(randn(3, 2), randn(3, 2))", "(randn(1, 1), randn(2, 1))"),
        (Leaks, "(randn(7), 0.5)", "(randn(7), -0.5)"),
    ],
)
def test_a_call_that_shows_what_is_wrong_is_found_and_made_small(function, call, wrong):
    assert audit(function, [call], laws=SURROGATE).report.verdicts[0].status is Status.HOLDS
    found, said = swept(function, call)
    assert found == [wrong]
    assert f"{wrong} breaks `surrogate`" in said


def test_a_sound_function_has_no_other_call():
    assert swept(Tiled, "(randn(2, 8),)")[0] == []


def test_what_the_given_call_shows_already_is_not_looked_for():
    assert swept(DropsTail, "(randn(2, 9),)")[0] == ["(randn(2, 9),)"]


def test_a_call_that_is_no_text_is_left_as_it_is():
    found = audit(Tiled, [(torch.ones(3, dtype=torch.float64),)], laws=SURROGATE, sweep=True)
    assert any("no call is written as text" in remark for remark in found.remarks)


def test_sizes_that_are_equal_stay_so_or_not_and_every_variant_can_be_read():
    texts = list(variants("(randn(4, 6), rand(6), 0.5)", Tiled, inspect.signature(lambda x, w, p: x)))
    assert "(randn(4, 1), rand(1), 0.5)" in texts
    assert "(randn(4, 6), rand(6), 1.0)" in texts
    assert "(randn(4, 7), rand(6), 0.5)" in texts
    assert "(randn(2, 4, 6), rand(6), 0.5)" in texts
    assert "(randn(4, 6), rand(6), -0.5)" in texts
    assert "(randn(4, 6) + 1000, rand(6), 0.5)" in texts
    assert not any("rand(6) + 1000" in text for text in texts), "in which range they make sense, nobody knows"
    assert {TILE - 1, TILE, TILE + 1, 2 * TILE - 1} <= {read_case(text).args[0].shape[0] for text in texts}
    assert len(set(texts)) == len(texts)


def test_an_index_is_repeated_and_turned_round():
    call = "(randn(4), tensor([2, 0, 3]), tensor([True, False]))"
    texts = list(variants(call, Tiled, inspect.signature(lambda x, i, m: x)))

    for index in ([2, 0, 2], [2, 2, 2], [3, 3, 3], [3, 0, 2]):
        assert f"(randn(4), tensor({index}), tensor([True, False]))" in texts
    for mask in ([True, True], [False, False], [False, True]):
        assert f"(randn(4), tensor([2, 0, 3]), tensor({mask}))" in texts


def test_a_row_of_indices_is_repeated_too():
    texts = list(variants("(randn(4, 3), tensor([[0, 1, 2], [3, 0, 1]]))", Tiled, inspect.signature(lambda x, i: x)))

    for row in ([0, 1, 0], [0, 0, 0], [2, 1, 0]):
        assert f"(randn(4, 3), tensor([{row}, [3, 0, 1]]))" in texts
    assert "(randn(4, 3), tensor([[0, 1, 2], [3, 3, 3]]))" in texts


def test_an_index_is_moved_and_may_be_the_default_that_stands_for_none():
    call = "(randn(4), tensor([2, -7, 3, 0]), arange(4), 0.0)"
    signature = inspect.signature(lambda x, i, p, s, ignore_index=-7: x)
    texts = list(variants(call, Tiled, signature))

    for index in ([3, -6, 4, 1], [2, -7, 3, -7]):
        assert f"(randn(4), tensor({index}), arange(4), 0.0)" in texts
    assert "(randn(4), tensor([2, -7, 3, 0]), arange(4) + 1, 0.0)" in texts
    assert "(randn(4), tensor([2, -7, 3, 0]), arange(4), 0.1)" in texts
    assert "(randn(5), tensor([2, -7, 3, 0, 2]), arange(5), 0.0)" in texts, (
        "as many numbers as the rows, a negative one too"
    )


class OfOneRow(Function):
    """Its backward raises for more than one row; for a dimension more, so does that of a sound one."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, y_bar):
        return 2 * y_bar.reshape(1, -1)


class OfTwoDimensions(OfOneRow):
    @staticmethod
    def backward(ctx, y_bar):
        rows, columns = y_bar.shape
        return 2 * y_bar.reshape(rows, columns)


@pytest.mark.parametrize(("function", "raises"), [(OfOneRow, "(randn(2, 3))"), (OfTwoDimensions, "")])
def test_a_size_that_forward_takes_and_for_which_backward_raises_is_a_finding(function, raises):
    report = audit(function, ["(randn(1, 3),)"], laws=SURROGATE, sweep=True).report

    assert [failure.case for failure in report.failures] == [raises][: bool(raises)]
    assert (
        "the backward pass of a plain call raises" in "".join(v.finding.message for v in report.failures) or not raises
    )


class Gathered(Function):
    """Rows by an index; its backward writes where it should add."""

    @staticmethod
    def forward(ctx, weight, index):
        ctx.save_for_backward(index)
        ctx.rows = len(weight)
        return weight[index]

    @staticmethod
    def backward(ctx, y_bar):
        weight_bar = y_bar.new_zeros(ctx.rows, y_bar.shape[1])
        weight_bar[ctx.saved_tensors[0]] = y_bar
        return weight_bar, None


@pytest.mark.slow
def test_an_index_that_occurs_twice_shows_a_write_that_should_add():
    assert swept(Gathered, "(randn(4, 2), tensor([2, 0, 3]))")[0] == ["(randn(3, 1), tensor([2, 0, 2]))"]


def test_smaller_calls_have_one_size_changed():
    assert list(smaller("(randn(3, 2),)")) == ["(randn(1, 2))", "(randn(2, 2))", "(randn(3, 1))"]


class Saturates(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(y := x.tanh())
        return y

    @staticmethod
    def backward(ctx, y_bar):
        (y,) = ctx.saved_tensors
        return y_bar * (1 - y * y)


class StraightThrough(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar


@pytest.mark.parametrize("function", [Saturates, StraightThrough])
def test_where_a_gradient_is_zero_or_meant_to_be_another_one_nothing_is_wrong(function):
    assert swept(function, "(randn(2, 3, requires_grad=True),)")[0] == []


@pytest.mark.slow
def test_a_question_of_the_given_call_ends_no_sweep():
    found = audit(StraightThrough, ["(randn(2, 3, requires_grad=True),)"], sweep=True, jobs=1)

    assert [v.status for v in found.report.of(law="surrogate")] == [Status.QUESTION]
    assert any(remark.startswith("By the sweep, ") for remark in found.remarks)


class WithoutItsMaximum(Function):
    """A softmax of numbers that are not too large."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp() / x.exp().sum(-1, keepdim=True)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, y_bar):
        (y,) = ctx.saved_tensors
        return y * (y_bar - (y_bar * y).sum(-1, keepdim=True))


def in_halves(x):
    """Refuses what has no two halves, as a function that does not check its arguments does not."""
    a, b = x.chunk(2, -1)
    return a.sigmoid() * b


class Gated(Function):
    """A gate whose gradient forgets the last of its rows, unless they are a multiple of eight."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        half = (x.shape[-1] + 1) // 2
        return x[..., :half].sigmoid() * x[..., -half:]

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        half = (x.shape[-1] + 1) // 2
        a, b = x[..., :half], x[..., -half:]
        found = torch.cat((y_bar * b * a.sigmoid() * (1 - a.sigmoid()), y_bar * a.sigmoid()), -1)
        found[len(x) - len(x) % 8 :] = 0
        return found[..., : x.shape[-1]]


@pytest.mark.parametrize(
    ("function", "reference", "law"),
    [(WithoutItsMaximum, lambda x: x.softmax(-1), "primal"), (Gated, in_halves, "vjp")],
)
def test_a_sweep_judges_what_is_not_finite_and_leaves_out_what_the_reference_refuses(function, reference, law):
    laws = [one for one in LAWS if one.name == law]
    found = audit(function, ["(randn(8),)"], laws=laws, reference=reference, sweep=True)

    assert any(verdict.status is Status.BROKEN for verdict in found.report.verdicts)
    assert any(f"breaks `{law}`" in remark for remark in found.remarks)


def test_a_sweep_says_what_only_a_reference_judges():
    found = audit(WithoutItsMaximum, ["(randn(8, 4),)"], laws=SURROGATE, sweep=True)

    assert "1 of them not finite, which only a reference judges" in found.remarks[-1]


def test_a_bound_and_a_list_of_indices_have_the_size_that_they_had_in_common_with_a_tensor():
    texts = [*variants("(randn(4, 3), randint(0, 3, (4,)), tensor([0, 2, 1, 0]))", Tiled, inspect.signature(in_halves))]

    assert "(randn(5, 3), randint(0, 3, (5,)), tensor([0, 2, 1, 0, 0]))" in texts
    assert "(randn(4, 2), randint(0, 2, (4,)), tensor([0, 2, 1, 0]))" in texts
