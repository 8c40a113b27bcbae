"""The judges in use elsewhere. Each compares results with float64, and knows nothing of how they came about."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gradspec_lab.kernels._kernel import Measured

Verdicts = dict[str, tuple[bool, str]]
Judge = Callable[[Measured, tuple[Any, ...], tuple[Tensor, ...]], Verdicts]


def _each(compare: Callable[[Measured, str], tuple[bool, str]]) -> Judge:
    @functools.wraps(compare)
    def judge(kernel: Measured, args: tuple[Any, ...], cotangents: tuple[Tensor, ...]) -> Verdicts:
        return {name: compare(kernel, name) for name in kernel.exact}

    return judge


@_each
def assert_close(kernel: Measured, name: str) -> tuple[bool, str]:
    """`torch.testing.assert_close`, with its tolerances by dtype."""
    result = kernel.results[name]
    try:
        torch.testing.assert_close(result, kernel.exact[name].to(result.dtype))
    except AssertionError as error:
        return False, str(error).splitlines()[-1][:100] if str(error) else ""
    return True, ""


@_each
def allclose(kernel: Measured, name: str) -> tuple[bool, str]:
    """`torch.allclose` with both tolerances 1e-2, in float32 1e-4, as benchmarks of generated kernels do."""
    result, exact = kernel.results[name].double(), kernel.exact[name]
    tolerance = 1e-4 if kernel.results[name].dtype == torch.float32 else 1e-2
    return torch.allclose(result, exact, rtol=tolerance, atol=tolerance), ""


@_each
def two_times(kernel: Measured, name: str) -> tuple[bool, str]:
    """Flash-attention's rule: not farther from float64 than twice the plain reference in the kernel's dtype."""
    result, exact = kernel.results[name], kernel.exact[name]
    low = exact.to(result.dtype)
    atol = 2 * ((low + 0.3 - 0.3) - low).double().abs().max().item() if low.numel() else 0.0
    allowed = 2 * _farthest(kernel.low[name], exact) + atol
    gap = _farthest(result, exact)
    return gap <= allowed, f"{gap:.3g} of {allowed:.3g}"


@_each
def cosine(kernel: Measured, name: str) -> tuple[bool, str]:
    """Cosine similarity of at least 0.99."""
    result, exact = kernel.results[name].double().flatten(), kernel.exact[name].flatten()
    if not result.isfinite().all():
        return bool(torch.equal(result, exact)), "not finite"
    if not exact.any():
        return not result.any(), "zero"
    found = torch.nn.functional.cosine_similarity(result, exact, dim=0, eps=0.0).item()
    return found >= 0.99, f"{found:.4f}"


@_each
def rmse(kernel: Measured, name: str) -> tuple[bool, str]:
    """Inductor's rule: the root mean square error is at most twice that of the low reference, in half thrice."""
    result, exact = kernel.results[name], kernel.exact[name]
    half = result.dtype != torch.float32
    allowed = (3 if half else 2) * _rms(kernel.low[name], exact) + (1e-3 if half else 1e-4) / 10
    gap = _rms(result, exact)
    return gap <= allowed, f"{gap:.3g} of {allowed:.3g}"


def _farthest(result: Tensor, exact: Tensor) -> float:
    return (result.double() - exact).abs().max().item() if exact.numel() else 0.0


def _rms(result: Tensor, exact: Tensor) -> float:
    return (result.double() - exact).square().mean().sqrt().item() if exact.numel() else 0.0


JUDGES: dict[str, Judge] = {judge.__name__: judge for judge in (assert_close, allclose, two_times, cosine, rmse)}
