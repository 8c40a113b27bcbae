"""Fixtures that every test may use."""

import pytest
import torch


def _devices():
    yield "cpu"
    yield pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
    )


@pytest.fixture(params=_devices())
def device(request):
    return request.param
