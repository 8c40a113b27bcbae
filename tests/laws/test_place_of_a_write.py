"""A finding that something was written prints the first element that has changed, before and after."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gradspec import verify
from gradspec.laws import LAWS
from gradspec.laws.tensor.support._memory import first_change, snapshots
from gradspec_lab.specimens import DISEASED


@pytest.mark.parametrize(
    ("specimen", "law", "place"),
    [
        ("writes_to_its_input", "inputs_untouched", ("[0, 0]", "1.540001", "1.54")),
        ("divides_the_cotangent_in_place", "cotangents_untouched", ("[0, 0]", "-25.665", "-8.555")),
        ("adds_twice_the_loss", "undefined_cotangent", ("", "2   at [0]", "0")),
        ("untracked_alias", "aliasing", ("", "another version counter", "that of `x`, as a view has")),
        ("root_at_zero", "gradient_flow", ("[0, 0, 0, 0]", "nan", "a finite number")),
    ],
)
def test_a_write_is_shown_with_its_numbers(specimen: str, law: str, place: tuple[str, str, str]) -> None:
    report = verify([DISEASED[specimen].spec], [one for one in LAWS if one.name == law])
    found = report.failures[0].finding
    assert (found.index, found.got, found.expected) == place


@pytest.mark.parametrize(
    ("tensor", "place"),
    [
        (torch.tensor([[1.0, 2.0], [3.0, 4.0]]), {"index": "[1, 0]", "got": "7", "expected": "3"}),
        (torch.tensor([1, 2, 3], dtype=torch.uint8), {"index": "[2]", "got": "7", "expected": "3"}),
        (torch.tensor([1 + 1j, 2.0, 3j]), {"index": "[2]", "got": "7+0j", "expected": "0+3j"}),
        (torch.tensor([1.0, 2.0, 3.0]).to(torch.float8_e4m3fn), {"index": "[2]", "got": "7", "expected": "3"}),
        (torch.eye(2).to_sparse() * 3, {"index": "[0, 0]", "got": "7", "expected": "3"}),
        (torch.tensor(3.0), {"index": "[]", "got": "7", "expected": "3"}),
    ],
    ids=["matrix", "bytes", "complex", "float8", "sparse", "number"],
)
def test_each_kind_of_tensor_has_a_place(tensor: Tensor, place: dict[str, str]) -> None:
    before = snapshots({"`x`": tensor})
    assert first_change(before, {"`x`": tensor}) is None
    changed = first_change(before, {"`x`": _with_seven_for_three(tensor)})
    assert changed is not None
    assert (changed.name, changed.place) == ("`x`", place)


def _with_seven_for_three(tensor: Tensor) -> Tensor:
    if tensor.layout is torch.sparse_coo:
        return torch.diag(torch.tensor([7.0, 3.0])).to_sparse()
    values = tensor.to(torch.complex64)
    values[values.abs() == 3] = 7
    return (values if tensor.is_complex() else values.real).to(tensor.dtype)


def test_a_version_counter_has_no_place() -> None:
    tensor = torch.ones(2)
    before = snapshots({"`x`": tensor})
    changed = first_change(before, {"`x`": tensor.mul_(1)})
    assert changed is not None
    assert (changed.how, changed.place) == ("its version counter has moved by 1", {})
