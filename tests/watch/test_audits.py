"""What an audit says of the calls that were kept."""

from __future__ import annotations

import pytest
import torch

import gradspec
from watch.watched import InSingle, InSingleAndWrong, Runs


def audited(function, *args):
    with gradspec.watch() as seen:
        function.apply(*args).sum().backward()
    (row,) = seen.audit().rows
    return row


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_computes_in_float32_is_not_held_to_the_digits_of_a_float64(dtype):
    x = torch.linspace(-1, 1, 12).reshape(3, 4).to(dtype).requires_grad_()
    right = audited(InSingle, x)
    assert not right.asked
    assert not any("float64" in verdict.case for verdict in right.report.verdicts)


def test_what_computes_in_float32_is_found_wrong_in_it():
    row = audited(InSingleAndWrong, torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_())
    assert row.is_wrong
    assert [one.found.laws for one in row.asked] == [["surrogate"]]


@pytest.mark.slow
def test_a_module_and_its_parameters_are_audited_as_they_belong_together():
    layer = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh())
    row = audited(Runs, torch.randn(2, 3, requires_grad=True), layer, *layer.parameters())
    assert not row.is_wrong
    assert not any(one.is_question for one in row.asked)
