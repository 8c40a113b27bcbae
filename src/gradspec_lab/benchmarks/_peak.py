"""The most memory that a call holds at once beside its arguments, as torch's profiler counts it."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from torch.profiler import ProfilerActivity, profile

if TYPE_CHECKING:
    from collections.abc import Callable


def peak_bytes(call: Callable[[], object]) -> int:
    """Return the most bytes that torch holds at once in a call, over what it held before: results and all between."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        call()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        seen.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    held = most = 0
    for event in sorted((e for e in events if e.get("name") == "[memory]"), key=lambda e: e["ts"]):
        held += event["args"]["Bytes"]
        most = max(most, held)
    return most
