"""Fixtures that every test may use."""

import pytest
import torch


def _devices():
    yield "cpu"
    yield pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
    )


@pytest.fixture(scope="session")
def compiler():
    """Have this process compile once, for those that are forked from it."""
    import warm_compiler  # noqa: F401


@pytest.fixture(params=_devices())
def device(request):
    return request.param
