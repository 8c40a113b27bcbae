"""Calls that a law makes up, on a CUDA device: an index that is out of range is found on the CPU."""

import torch

from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._made_up import can_be_made


def rows(table, index):
    return table[index]


def inputs(count, index):
    return Inputs({"table": torch.ones(count, 2), "index": index}, ("table",))


def test_a_call_with_an_index_out_of_range_is_not_made_on_a_device(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    index = torch.tensor([0, 2])
    assert can_be_made(rows, inputs(3, index))
    assert not can_be_made(rows, inputs(2, index))
    assert can_be_made(rows, inputs(2, torch.tensor([1.0])))  # without an integer it is not asked


def test_on_a_cpu_whatever_is_tried_raises_by_itself():
    assert can_be_made(rows, inputs(2, torch.tensor([0, 2])))
