"""The copies that a law calls a function with: their own memory, and all of the given one."""

from __future__ import annotations

import pytest
import torch

from gradspec.laws.tensor.support._call import fresh

X = torch.arange(12.0)


@pytest.mark.parametrize(
    "given",
    [
        X.reshape(3, 4).T,
        X[:3].expand(2, 3),
        X[3:].view(3, 3)[:, 1:],
        X[::2],
        torch.complex(X, -X).reshape(3, 4).mH,
        X.long().reshape(3, 4)[::2],
    ],
    ids=["transposed", "expanded", "behind an offset", "every other", "conjugate", "whole"],
)
def test_a_copy_has_the_numbers_and_the_strides_and_memory_of_its_own(given):
    copy = fresh(given)

    assert torch.equal(copy, given)
    assert copy.stride() == given.stride()
    assert copy.untyped_storage().data_ptr() != given.untyped_storage().data_ptr()


def test_what_lies_between_the_numbers_is_copied():
    given = torch.stack((torch.arange(4.0), torch.full((4,), 7.0)), -1)[..., 0]

    assert fresh(given).as_strided((7,), (1,)).tolist() == [0, 7, 1, 7, 2, 7, 3]
