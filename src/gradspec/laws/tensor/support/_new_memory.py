"""What new memory holds: of `torch.empty` and its kin, NaN or whatever was there before."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def new_memory(*, fill: bool) -> Iterator[None]:
    """Have torch fill new memory with NaN, or not; it does so only while its algorithms are deterministic."""
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    filling = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]  # torch sets it late
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = fill  # type: ignore[attr-defined]  # as above
        try:
            yield
        finally:
            torch.utils.deterministic.fill_uninitialized_memory = filling  # type: ignore[attr-defined]  # as above
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])
