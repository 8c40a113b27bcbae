"""A function that draws noise, held still: the generators are seeded alike before each pass that draws."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from torch import Tensor

from gradspec.laws.tensor.support._call import outputs
from gradspec.laws.tensor.support._generators import seed_all


def held_still(
    call: Callable[..., Any], seed: int, *, forward: bool, backward: bool, alike: bool = False
) -> Callable[..., Any]:
    """Return the call with its noise fixed, of forward, of backward, or of both.

    Backward draws other numbers than forward, as it does in training: a mask that backward draws for itself must not
    be that of forward by the grace of a seed; it is with `alike`.
    """

    def seeded(*_: Any) -> None:
        seed_all(seed if alike else seed + 1)

    @wraps(call, assigned=("__doc__",), updated=())
    def still(*args: Any, **kwargs: Any) -> Any:
        if forward:
            seed_all(seed)
        y = call(*args, **kwargs)
        for t in outputs(y) if backward else ():
            if isinstance(t, Tensor) and t.requires_grad:
                t.register_hook(seeded)  # type: ignore[no-untyped-call]  # it runs right before the backward pass
        return y

    return still
