"""Fixtures that every test may use."""

import gc

import pytest
import torch

from gradspec._engine._autograd import settle
from gradspec._engine._compiler import import_dynamo
from huge_pages import collapse

pytest_plugins = ["cpu_seconds", "slow_part"]

#: Before the first test that compiles: a process with threads of autograd has no child that takes a gradient.
settle()
#: Each check runs in a fork, which would import it anew.
import_dynamo()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    """Keep torch and the tests themselves out of every search for cycles: they stay, and a fork would copy them."""
    gc.collect()
    gc.freeze()
    collapse()


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
