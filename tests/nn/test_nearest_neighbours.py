"""The weighted vote of the nearest neighbours, against a loop in plain Python and against hand-made ties."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradspec.nn import nearest_neighbour_scores
from gradspec.nn._memory_bank import _nearest_neighbours


def by_hand(x, memory, labels, classes, k, tau):
    """Sort all rows of the bank by similarity, then by place, and count the votes of the first k."""

    def cosine(a, b):
        return sum(p * q for p, q in zip(a, b, strict=True)) / (math.hypot(*a) * math.hypot(*b))

    scores = []
    for row in x.tolist():
        similar = [cosine(row, other) for other in memory.tolist()]
        nearest = sorted(range(len(similar)), key=lambda i: (-similar[i], i))[:k]
        votes = [0.0] * classes
        for i in nearest:
            votes[labels[i]] += math.exp(similar[i] / tau)
        scores.append([vote / sum(votes) for vote in votes])
    return torch.tensor(scores, dtype=torch.float64)


def bank(size, features=5, classes=3, batch=4, seed=0):
    torch.manual_seed(seed)
    x, memory = torch.randn(batch, features).double(), torch.randn(size, features).double()
    return x, memory, torch.randint(classes, (size,)), classes


@pytest.mark.parametrize("k", [1, 7, 40])
@pytest.mark.parametrize("tau", [0.07, 1.0])
def test_scores_are_those_of_a_loop(k, tau):
    args = bank(40)
    torch.testing.assert_close(nearest_neighbour_scores(*args, k=k, tau=tau), by_hand(*args, k=k, tau=tau))


@pytest.mark.parametrize("numbers", [1, 20, 64])
def test_chunks_change_nothing(monkeypatch, numbers):
    args = bank(41)
    whole = nearest_neighbour_scores(*args, k=9)
    monkeypatch.setattr(_nearest_neighbours, "CHUNK_NUMBERS", numbers)

    torch.testing.assert_close(nearest_neighbour_scores(*args, k=9), whole)


@settings(deadline=None)
@given(st.integers(1, 12), st.sampled_from([1, 8, 1000]))
def test_of_equal_rows_the_first_ones_vote(k, numbers):
    chunk, _nearest_neighbours.CHUNK_NUMBERS = _nearest_neighbours.CHUNK_NUMBERS, numbers
    try:
        # Twelve equal rows, each a class of its own: exactly the first k have a vote.
        memory, labels = torch.ones(12, 2), torch.arange(12)
        scores = nearest_neighbour_scores(torch.ones(3, 2), memory, labels, 12, k=k)
    finally:
        _nearest_neighbours.CHUNK_NUMBERS = chunk

    expected = (torch.arange(12) < k) / k
    torch.testing.assert_close(scores, expected.expand(3, 12))


def test_defaults_are_those_of_the_paper():
    args = bank(300)

    expected = nearest_neighbour_scores(*args, k=200, tau=0.07)
    assert torch.equal(nearest_neighbour_scores(*args), expected)


def test_lengths_count_for_nothing():
    x, memory, labels, classes = bank(30)
    longer = nearest_neighbour_scores(7 * x, memory * torch.rand(30, 1) * 9, labels, classes, k=5)

    torch.testing.assert_close(longer, nearest_neighbour_scores(x, memory, labels, classes, k=5))


def test_a_small_tau_does_not_overflow():
    scores = nearest_neighbour_scores(*bank(30), k=5, tau=1e-6)

    torch.testing.assert_close(scores.sum(1), torch.ones(4).double())


def test_no_embedding_has_no_scores():
    x, memory, labels, classes = bank(30)

    assert nearest_neighbour_scores(x[:0], memory, labels, classes, k=5).shape == (0, 3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_half_type_is_computed_in_float32(dtype):
    x, memory, labels, classes = bank(30)
    x, memory = x.to(dtype), memory.to(dtype)
    scores = nearest_neighbour_scores(x, memory, labels, classes, k=5)

    torch.testing.assert_close(scores, nearest_neighbour_scores(x.float(), memory.float(), labels, classes, k=5))


def test_no_gradient_flows():
    x, memory, labels, classes = bank(30)

    assert not nearest_neighbour_scores(x.requires_grad_(), memory, labels, classes, k=5).requires_grad


X, MEMORY, LABELS = torch.ones(2, 3), torch.ones(4, 3), torch.tensor([0, 1, 1, 0])


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"k": 5}, ValueError, "k is 5 and the bank has 4 rows, expected 1 <= k <= 4"),
        ({"k": 0}, ValueError, "k is 0"),
        ({"tau": 0.0}, ValueError, "tau is 0.0"),
        ({"tau": float("nan")}, ValueError, "tau is nan"),
        ({"x": X.double()}, TypeError, "float64 and memory torch.float32"),
        ({"x": X.long(), "memory": MEMORY.long()}, TypeError, "expected one floating dtype"),
        ({"labels": LABELS.int()}, TypeError, r"Write labels\.long\(\)"),
        ({"labels": LABELS[:3]}, ValueError, r"labels have shape \(3,\)"),
        ({"labels": LABELS + 1}, ValueError, "labels go from 1 to 2, expected 0 to 1 for 2 classes"),
        ({"labels": LABELS - 1}, ValueError, "labels go from -1 to 0"),
        ({"x": X[:, :2]}, ValueError, r"\(2, 2\) and memory \(4, 3\)"),
        ({"x": X * torch.nan}, ValueError, "x has NaN"),
        ({"memory": MEMORY / 0}, ValueError, "memory has NaN or infinite"),
    ],
)
def test_wrong_calls_are_refused(change, error, match):
    given = {"x": X, "memory": MEMORY, "labels": LABELS, "classes": 2, "k": 2} | change
    with pytest.raises(error, match=match):
        nearest_neighbour_scores(**given)
