"""What the places show in which a gradient is wrong, where others are right."""

from __future__ import annotations

from torch import Tensor, isclose


def in_places(got: Tensor, expected: Tensor) -> str:
    """Say at which places of a dimension a gradient is wrong, where it is right at all others."""
    off, found = ~_close(got, expected), []
    for dim, size in enumerate(off.shape):
        rows = off.movedim(dim, 0).reshape(size, -1)
        places = [k for k in range(size) if bool(rows[k].any())]
        # Whole rows, and of more than one element: a single wrong element lies in some row of each dimension.
        if 0 < len(places) < size and rows.shape[1] > 1 and bool(rows[places].all()):
            found.append((len(places) / size, dim, size, places))
    if not found:
        return ""
    _, dim, size, places = min(found)
    at = ", ".join(map(str, places))
    return f"wrong at {at} of dimension {dim} (of {size}), right elsewhere: an edge, a padding, a window, an index"


def masked(got: Tensor, expected: Tensor) -> str:
    """Say whether a gradient is wrong just where the right one is zero, or just where it is zero itself."""
    close = _close(got, expected)
    off = ~close
    if not bool(off.any()):
        return ""
    if bool((expected[off] == 0).all()) and bool((close & (expected != 0)).any()):
        return "right but where the surrogate's gradient is 0: a mask is missing in backward (a clip, a threshold)"
    if bool((got[off] == 0).all()) and bool((close & (got != 0)).any()):
        return "0 in places where the surrogate's gradient is not, right elsewhere: a mask in backward shuts too much"
    return ""


def _close(got: Tensor, expected: Tensor) -> Tensor:
    """Return where two gradients agree; a rounding beside zero is none of what is looked for here."""
    return isclose(got, expected, rtol=1e-5, atol=1e-6 * float(expected.nan_to_num().abs().max()))
