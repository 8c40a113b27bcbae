"""Diagnose a backward from the text of torch's error."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any


def unreduced(error: RuntimeError) -> str:
    """Say what backward returns that torch refuses: a number too few, or a gradient that is still broadcast."""
    if counts := re.search(r"incorrect number of gradients \(expected (\d+), got (\d+)\)", str(error)):
        return (
            f"backward returns {counts[2]} of {counts[1]} gradients: one for each argument of forward, or None for it"
        )
    found = re.search(
        r"returned an invalid gradient at index (\d+) - got \[(.*)\] but expected .* \[(.*)\]", str(error)
    )
    if found is None:
        return ""
    got, expected = ([int(n) for n in text.split(",") if n.strip()] for text in found.groups()[1:])
    rest = iter(got)
    if len(got) <= len(expected) or not all(n in rest for n in expected):
        return ""
    return f"sum what backward returns at place {found[1]} over the dimensions that broadcasting added to {expected}"


def quietly(call: Callable[[], Any]) -> Any:
    """Return what a call returns; None where it raises: it was to explain, and explains nothing then."""
    try:
        return call()
    except (Exception, SystemExit):
        return None
