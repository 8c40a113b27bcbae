"""Time two ways of the same computation side by side, so that the machine's moods hit both."""

from __future__ import annotations

import platform
import random
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from gradspec._record import provenance

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def interleaved(ways: Mapping[str, Callable[[], object]], *, rounds: int, warm_up: int = 3) -> dict[str, list[float]]:
    """Return the seconds of each way in each round; each round runs all of them, in an order of its own.

    Not one that rotates: each way would always follow the same one, and pay for the memory that it gave back.
    """
    names, order = list(ways), random.Random(0)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(-warm_up, rounds):
        for name in order.sample(names, len(names)):
            begin = time.perf_counter()
            ways[name]()
            if turn >= 0:
                seconds[name].append(time.perf_counter() - begin)
    return seconds


def summary(seconds: Mapping[str, list[float]], *, ours: str, baseline: str) -> dict[str, Any]:
    """Return the medians in milliseconds, and the median over the rounds of ours over the baseline, with quartiles."""
    ratios = [a / b for a, b in zip(seconds[ours], seconds[baseline], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return {
        "median_ms": {name: round(1e3 * statistics.median(times), 4) for name, times in seconds.items()},
        "ratio": {"of": ours, "to": baseline, "median": round(middle, 4), "quartiles": [round(low, 4), round(high, 4)]},
    }


def machine() -> dict[str, Any]:
    """Return what a reader needs to judge a time: date, commit, versions, device and threads; no host name."""
    return {**provenance(device=_cpu()), "threads": torch.get_num_threads()}


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())
