"""The merge by log-sum-exp: any slicing of the keys gives what one softmax over all of them gives."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradspec.functions import merge_by_log_sum_exp

INF = float("inf")


def attention(logits, values):
    return logits.softmax(-1) @ values, logits.logsumexp(-1)


def sliced(logits, values, cuts):
    """Return the stacked pairs of the slices between the cuts; NaN and -inf for a slice without a key."""
    pairs = [attention(logits[:, a:b], values[a:b]) for a, b in zip([0, *cuts], [*cuts, len(values)], strict=True)]
    outputs = [torch.full_like(output, torch.nan) if lse.isinf().all() else output for output, lse in pairs]
    return torch.stack(outputs), torch.stack([lse for _, lse in pairs])


@settings(deadline=None)
@given(st.lists(st.integers(0, 12), max_size=5).map(sorted), st.integers(0, 100))
def test_any_slicing_gives_the_whole(cuts, seed):
    generator = torch.Generator().manual_seed(seed)
    logits = 20 * torch.randn(3, 12, generator=generator, dtype=torch.float64)
    values = torch.randn(12, 2, generator=generator, dtype=torch.float64)

    merged = merge_by_log_sum_exp(*sliced(logits, values, cuts))
    for got, expected in zip(merged, attention(logits, values), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-13, atol=1e-14)


def test_a_merge_of_merges_is_the_merge():
    pairs = sliced(torch.randn(3, 12).double(), torch.randn(12, 2).double(), [2, 5, 9])
    first, last = (merge_by_log_sum_exp(*(part[half] for part in pairs)) for half in (slice(2), slice(2, 4)))

    again = merge_by_log_sum_exp(*(torch.stack(two) for two in zip(first, last, strict=True)))
    for got, expected in zip(again, merge_by_log_sum_exp(*pairs), strict=True):
        torch.testing.assert_close(got, expected)


def test_large_logits_neither_overflow_nor_vanish():
    outputs, log_sum_exps = torch.tensor([[[1.0]], [[3.0]]]), torch.tensor([[5000.0], [5000.0]])
    output, log_sum_exp = merge_by_log_sum_exp(outputs, log_sum_exps)

    assert output.item() == 2
    assert log_sum_exp.item() == pytest.approx(5000 + 0.6931, rel=1e-6)


def test_where_every_slice_is_empty_the_merge_is_empty():
    output, log_sum_exp = merge_by_log_sum_exp(torch.full((2, 3, 1), torch.nan), torch.full((2, 3), -INF))

    assert (output.flatten().tolist(), log_sum_exp.tolist()) == ([0.0] * 3, [-INF] * 3)


def test_its_gradient_is_that_of_the_whole():
    logits, values = torch.randn(3, 12).double().requires_grad_(), torch.randn(12, 2).double().requires_grad_()

    def gradients(output, log_sum_exp):
        return torch.autograd.grad(output.square().sum() + log_sum_exp.sum(), (logits, values))

    expected = gradients(*attention(logits, values))
    for got, right in zip(gradients(*merge_by_log_sum_exp(*sliced(logits, values, [5]))), expected, strict=True):
        torch.testing.assert_close(got, right)


@pytest.mark.parametrize(("output", "log_sum_exp"), [((2, 3, 4), (2, 4)), ((2, 3), (2, 3)), ((4,), ())])
def test_shapes_that_do_not_belong_together_are_refused(output, log_sum_exp):
    with pytest.raises(ValueError, match="stack the slices in dimension 0"):
        merge_by_log_sum_exp(torch.ones(output), torch.ones(log_sum_exp))


def test_no_slice_is_refused():
    with pytest.raises(ValueError, match="there is no slice"):
        merge_by_log_sum_exp(torch.ones(0, 3, 4), torch.ones(0, 3))
