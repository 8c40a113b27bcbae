"""ShakeShake and the losses against copying the same bytes on the device, and against plain torch, interleaved."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from gradspec.functions import LinearAverageOp, ShakeShake, instance_discrimination_loss, linear_cross_entropy
from gradspec_lab.benchmarks._interleaved import interleaved, summary

#: A branch: samples, channels, height, width.
BRANCHES = ((128, 64, 32, 32), (512, 64, 32, 32), (128, 64, 8, 8))
#: Rows of the bank, and classes; the last is the training set of ImageNet.
ROWS = (10_000, 100_000, 1_281_167)
BATCH, FEATURES, TEMPERATURE = 256, 128, 0.07
DTYPES = (torch.float32, torch.bfloat16)
ROUNDS = 31
#: How many seconds one timing takes at the least: the calls of a way are queued, and waited for once.
LEAST = 0.003
OURS, PLAIN, COPY, PRODUCTS = "ours", "torch", "copy", "two products"

Ways = Mapping[str, Callable[[], object]]


def measure(device: str) -> Iterator[dict[str, Any]]:
    """Yield the measurements; on a CPU of small sizes, in which nobody should read anything."""
    small = not device.startswith("cuda")
    branches, rows, rounds = ([(8, 4, 4, 4)], [100], 3) if small else (BRANCHES, ROWS, ROUNDS)
    for dtype in DTYPES:
        for shape in branches:
            what: dict[str, Any] = {"what": "both passes of ShakeShake", "shape": list(shape)}
            yield _measured(what, dtype, _branches(shape, dtype, device), (PLAIN, COPY), rounds, device)
        for size in rows:
            sized: dict[str, Any] = {"rows": size, "batch": BATCH, "features": FEATURES}
            what = {"what": "loss against a memory bank, and gradient", **sized}
            ways = _bank(size, dtype, device)
            yield _measured(what, dtype, ways, (PLAIN, PRODUCTS, COPY), rounds, device)
            what = {"what": "linear_cross_entropy, and both gradients", **sized}
            yield _measured(what, dtype, _classes(size, dtype, device), (PLAIN, COPY), rounds, device)
            if size != max(ROWS):
                what = {"what": "both passes of LinearAverageOp, which moves its bank", **sized}
                yield _measured(what, dtype, _average(size, dtype, device), (PRODUCTS, COPY), rounds, device)


def _branches(shape: tuple[int, ...], dtype: torch.dtype, device: str) -> Ways:
    x1, x2 = (torch.randn(shape, dtype=dtype, device=device, requires_grad=True) for _ in range(2))
    v = torch.randn(shape, dtype=dtype, device=device)
    # Six tensors are moved at the least: two are read and one is written, then one is read and two are written. A copy
    # moves two.
    source, target = (torch.empty((3, *shape), dtype=dtype, device=device) for _ in range(2))

    def plain() -> object:
        # The published idiom: the value of one mix, and the gradient of the other.
        alpha, beta = (torch.rand(shape[0], 1, 1, 1, dtype=dtype, device=device) for _ in range(2))
        mixed, other = alpha * x1 + (1 - alpha) * x2, beta * x1 + (1 - beta) * x2
        return torch.autograd.grad(other + (mixed - other).detach(), (x1, x2), v)

    return {
        OURS: lambda: torch.autograd.grad(ShakeShake.apply(x1, x2, True), (x1, x2), v),
        PLAIN: plain,
        COPY: lambda: target.copy_(source),
    }


def _drawn(size: int, dtype: torch.dtype, device: str) -> tuple[Tensor, Tensor, Tensor, Callable[[], object]]:
    """Return rows, a bank, classes, and what copies the bank on the device."""
    x, bank = (normalize(torch.randn(n, FEATURES, device=device)).to(dtype) for n in (BATCH, size))
    target = torch.empty_like(bank)
    y = torch.randperm(max(size, BATCH), device=device)[:BATCH] % size
    return x.requires_grad_(), bank, y, partial(target.copy_, bank)


def _bank(size: int, dtype: torch.dtype, device: str) -> Ways:
    x, bank, y, copy = _drawn(size, dtype, device)

    def step(loss: Tensor) -> object:
        return torch.autograd.grad(loss, x)

    return {
        OURS: lambda: step(instance_discrimination_loss(x, y, bank, TEMPERATURE)),
        PLAIN: lambda: step(cross_entropy(x @ bank.T / TEMPERATURE, y)),
        PRODUCTS: lambda: x.detach() @ bank.T @ bank,
        COPY: copy,
    }


def _classes(size: int, dtype: torch.dtype, device: str) -> Ways:
    x, weight, y, copy = _drawn(size, dtype, device)
    weight.requires_grad_()

    def step(loss: Tensor) -> object:
        return torch.autograd.grad(loss, (x, weight))

    return {
        OURS: lambda: step(linear_cross_entropy(x, weight, y, temperature=TEMPERATURE)),
        PLAIN: lambda: step(cross_entropy(x @ weight.T / TEMPERATURE, y)),
        COPY: copy,
    }


def _average(size: int, dtype: torch.dtype, device: str) -> Ways:
    x, bank, y, copy = _drawn(size, dtype, device)
    params = torch.tensor([TEMPERATURE, 0.5], dtype=dtype, device=device)
    moved, v = bank.clone(), torch.randn(BATCH, size, dtype=dtype, device=device)
    return {
        OURS: lambda: torch.autograd.grad(LinearAverageOp.apply(x, y, moved, params), x, v),
        PRODUCTS: lambda: (x.detach() @ bank.T, v @ bank),
        COPY: copy,
    }


def _measured(
    what: Mapping[str, Any], dtype: torch.dtype, ways: Ways, against: tuple[str, ...], rounds: int, device: str
) -> dict[str, Any]:
    """Return the medians of one call, the ratios of ours to each other way, and the bytes held beside the arguments."""
    row: dict[str, Any] = {**what, "dtype": str(dtype).removeprefix("torch."), "rounds": rounds}
    try:
        calls = {name: _calls(way, device) for name, way in ways.items()}
        seconds = {
            name: [each / calls[name] for each in times]
            for name, times in interleaved(
                {name: partial(_queued, way, calls[name], device) for name, way in ways.items()}, rounds=rounds
            ).items()
        }
        compared = [summary(seconds, ours=OURS, baseline=name) for name in against]
        row |= {"median_ms": compared[0]["median_ms"], "ratios": [each["ratio"] for each in compared]}
        if device.startswith("cuda"):
            row["peak_bytes"] = {name: _peak(way) for name, way in ways.items() if name in (OURS, PLAIN)}
    except Exception as error:
        row["error"] = f"{type(error).__name__}: {error}".partition("\n")[0]
    return row


def _queued(way: Callable[[], object], calls: int, device: str) -> None:
    for _ in range(calls):
        way()
    _wait(device)


def _calls(way: Callable[[], object], device: str) -> int:
    """Return how many calls take long enough to be timed; the first ones load kernels."""
    for _ in range(3):
        way()
    _wait(device)
    begin = time.perf_counter()
    way()
    _wait(device)
    return max(1, min(200, round(LEAST / max(time.perf_counter() - begin, 1e-6))))


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def _peak(way: Callable[[], object]) -> int:
    """Return the most bytes that a call holds at once, its results among them."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    way()
    torch.cuda.synchronize()
    return int(torch.cuda.max_memory_allocated() - before)
