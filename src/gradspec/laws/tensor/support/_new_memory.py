"""What new memory holds: of `torch.empty` and its kin, NaN or zeros in place of what was there before."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any
from unittest import mock

import torch

_MAKERS = (
    (torch, ("empty", "empty_like", "empty_strided", "empty_permuted")),
    (torch.Tensor, ("new_empty", "new_empty_strided")),
)


@contextmanager
def of_nan() -> Iterator[None]:
    """Have torch fill new memory with NaN: it does so while its algorithms are deterministic."""
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    filling = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]  # torch sets it late
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = True  # type: ignore[attr-defined]  # as above
        try:
            yield
        finally:
            torch.utils.deterministic.fill_uninitialized_memory = filling  # type: ignore[attr-defined]  # as above
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])


@contextmanager
def of_zeros() -> Iterator[None]:
    """Fill with zeros what Python code asks torch for; code in C++ gets memory as it is."""
    # No mode of torch sees what backward and the code of an operator call.
    with ExitStack() as stack:
        for owner, names in _MAKERS:
            for name in names:
                stack.enter_context(mock.patch.object(owner, name, _cleared(getattr(owner, name))))
        yield


def _cleared(maker: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @wraps(maker)
    def cleared(*args: Any, **kwargs: Any) -> torch.Tensor:
        made = maker(*args, **kwargs)
        made.detach().zero_()
        return made

    return cleared
