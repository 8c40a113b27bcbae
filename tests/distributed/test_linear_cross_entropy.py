"""The loss over two and four ranks is that of one process, with each of its options and with shards of any size."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from distributed.calls import Call, compare
from distributed.pool import Pool

CALLS = {
    "plain": Call(),
    "by mesh": Call(by_mesh=True, bias=True),
    "bias": Call(bias=True),
    "margin for each row": Call(margin=True, bias=True),
    "one margin": Call(options=(("margin", 0.35), ("temperature", 0.1))),
    "label smoothing": Call(bias=True, margin=True, options=(("label_smoothing", 0.1),)),
    "only label smoothing": Call(options=(("label_smoothing", 1.0),)),
    "ignored class": Call(bias=True, options=(("ignore_index", 2), ("label_smoothing", 0.2))),
    "tensor temperature": Call(options=(("temperature", torch.tensor(0.2, dtype=torch.float64)),)),
    "no gradient to the weight": Call(weight=False),
    "gradient to the bias only": Call(weight=False, bias=True),
    "a rank without a row": Call(classes=3, bias=True, margin=True, options=(("label_smoothing", 0.1),)),
    "shards of two sizes": Call(classes=9, bias=True),
    "one class": Call(classes=1),
    "batches of different sizes": Call(batches=(1, 4), bias=True, margin=True, options=(("label_smoothing", 0.1),)),
    "a rank without a batch": Call(batches=(0, 5), bias=True),
    "a loss for each row": Call(options=(("reduction", "none"),)),
    "many classes": Call(classes=10_000, batches=(2, 3), features=3, bias=True),
}


#: Of the loss, and of the largest number of each gradient.
TOLERANCES = {torch.float32: 1e-6, torch.float64: 1e-12}


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("kept", [True, False], ids=["kept", "computed again"])
def test_loss_and_gradients_are_those_of_one_process(pool: Pool, call: Call, dtype: torch.dtype, kept: bool) -> None:
    for errors in pool.run(compare, replace(call, dtype=dtype, kept=kept)):
        largest_logit = errors.pop("largest logit")
        assert errors.pop("loss") <= TOLERANCES[dtype], errors
        # A probability is the exponential of a logit less the log-sum-exp of the ranks: it is off by what these round.
        rounded = max(1.0, largest_logit) if dtype == torch.float32 else 1.0
        assert max(errors.values()) <= rounded * TOLERANCES[dtype], errors
