r"""Classify embeddings by a weighted vote of their nearest neighbours in a memory bank.

.. math::

    w_c = \sum_{i \in \mathcal{N}_k,\; c_i = c} e^{s_i / \tau}, \qquad
    s_i = \frac{x \cdot k_i}{\lVert x \rVert \lVert k_i \rVert}
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import normalize

CALL = "nearest_neighbour_scores"
#: How many similarities are held at once: 8 MB in float32.
CHUNK_NUMBERS = 2**21


@torch.no_grad()
def nearest_neighbour_scores(
    x: Tensor, memory: Tensor, labels: Tensor, classes: int, k: int = 200, tau: float = 0.07
) -> Tensor:
    r"""Return the class scores of embeddings by a weighted vote of the k nearest rows of a memory bank.

    .. math::

        w_c = \sum_{i \in \mathcal{N}_k,\; c_i = c} e^{s_i / \tau}, \qquad
        s_i = \frac{x \cdot k_i}{\lVert x \rVert \lVert k_i \rVert}

    The neighbours are the rows with the largest cosine similarity :math:`s_i`; of equal ones, those that are first in
    the bank. The scores of an embedding are its votes over their sum, so that they cannot overflow and sum to 1. No
    buffer of B x N: the bank is read a chunk at a time. No gradient flows.

    Args:
        x: shape (B, D), floating: the embeddings to classify, of any length.
        memory: shape (N, D), dtype and device of `x`: the bank, of rows of any length.
        labels: shape (N,), int64: the class of each row, from 0 to `classes` - 1.
        classes: how many classes there are.
        k: how many neighbours vote; at most N.
        tau: the temperature of the votes: above 0; the larger, the more even.

    Returns:
        Shape (B, classes), dtype of `x`, float32 for a half type. `scores.argmax(1)` is the prediction.

    Raises:
        TypeError: `x` or `memory` is not floating, their dtypes differ, or `labels` is not int64.
        ValueError: shapes do not belong together, k is not from 1 to N, tau is not above 0, a label is not a class, or
            an embedding or a row is not finite.

    Example:
        >>> import torch
        >>> memory = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [-1.0, 0.0]])
        >>> labels = torch.tensor([0, 1, 1, 0])
        >>> scores = nearest_neighbour_scores(torch.tensor([[2.0, 0.0]]), memory, labels, classes=2, k=3, tau=1.0)
        >>> scores  # e^1 for class 0, e^0.8 + e^0 for class 1
        tensor([[0.4573, 0.5427]])
        >>> scores.argmax(1)
        tensor([1])

    References:
        `Unsupervised Feature Learning via Non-Parametric Instance Discrimination <https://arxiv.org/abs/1805.01978>`_,
        Wu, Xiong, Yu and Lin, 2018, section 3.4.
    """
    _check(x, memory, labels, classes, k, tau)
    dtype = torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype
    queries = normalize(_finite("x", x).to(dtype))
    similarity, label = queries.new_empty(len(x), 0), labels.new_empty(len(x), 0)
    height = max(1, CHUNK_NUMBERS // max(1, *x.shape))
    for start in range(0, len(memory), height):
        rows = normalize(_finite("memory", memory[start : start + height]).to(dtype))
        near, index = _largest(queries @ rows.T, min(k, len(rows)))
        # Those of earlier chunks are first, so that of equal ones the first in the bank stays.
        similarity, label = torch.cat((similarity, near), 1), torch.cat((label, labels[start + index]), 1)
        similarity, kept = _largest(similarity, min(k, similarity.shape[1]))
        label = label.gather(1, kept)
    # The largest similarity is taken off before exp, as in a softmax: tau may be small.
    votes = (similarity / tau).softmax(1)
    return votes.new_zeros(len(x), classes).scatter_add_(1, label, votes)


def _largest(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest of each row and where they are, in that order; of equal ones, those that are first.

    `torch.topk` by itself leaves open which of equal ones it takes.
    """
    if 0 in (len(values), k):
        index = torch.zeros(len(values), k, dtype=torch.int64, device=values.device)
        return values.gather(1, index), index
    least = values.topk(k, dim=1, sorted=True).values[:, -1:]
    above, equal = values > least, values == least
    wanted = k - above.sum(1, keepdim=True)
    index = (above | (equal & (equal.cumsum(1) <= wanted))).nonzero()[:, 1].view(-1, k)
    return values.gather(1, index), index


def _finite(name: str, tensor: Tensor) -> Tensor:
    if not bool(tensor.isfinite().all()):
        raise ValueError(f"{CALL}: {name} has NaN or infinite elements, which have no neighbours")
    return tensor


def _check(x: Tensor, memory: Tensor, labels: Tensor, classes: int, k: int, tau: float) -> None:
    if not x.is_floating_point() or x.dtype != memory.dtype:
        raise TypeError(f"{CALL}: x has dtype {x.dtype} and memory {memory.dtype}, expected one floating dtype")
    if labels.dtype != torch.int64:
        raise TypeError(f"{CALL}: labels have dtype {labels.dtype}, expected torch.int64. Write labels.long()")
    if x.ndim != 2 or memory.ndim != 2 or x.shape[1] != memory.shape[1]:
        raise ValueError(
            f"{CALL}: x has shape {tuple(x.shape)} and memory {tuple(memory.shape)}, expected (B, D) and (N, D)"
        )
    if labels.shape != memory.shape[:1]:
        raise ValueError(
            f"{CALL}: labels have shape {tuple(labels.shape)} and memory {tuple(memory.shape)}, expected a label for "
            f"each row"
        )
    if not 1 <= k <= len(memory):
        raise ValueError(f"{CALL}: k is {k} and the bank has {len(memory)} rows, expected 1 <= k <= {len(memory)}")
    if not 0 < tau < math.inf:
        raise ValueError(f"{CALL}: tau is {tau}, expected a finite number above 0, such as 0.07")
    low, high = (int(label) for label in labels.aminmax())
    if low < 0 or high >= classes:
        raise ValueError(f"{CALL}: labels go from {low} to {high}, expected 0 to {classes - 1} for {classes} classes")
