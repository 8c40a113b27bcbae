"""A function that draws noise, held still: the generators are seeded alike before each pass that draws.

A generator from which backward did not draw is as it was once backward has ended: seeding is no draw, and a law that
watches the generators must name the one that was drawn from.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy
import torch
from torch import Tensor
from torch.autograd import Variable

from gradspec.laws.tensor.support._call import outputs
from gradspec.laws.tensor.support._generators import NUMPY, PYTHON, moved, of_device, seed_all, states


def held_still(
    call: Callable[..., Any], seed: int, *, forward: bool, backward: bool, alike: bool = False
) -> Callable[..., Any]:
    """Return the call with its noise fixed, of forward, of backward, or of both.

    Backward draws other numbers than forward, as it does in training: a mask that backward draws for itself must not
    be that of forward by the grace of a seed; it is with `alike`.
    """

    def seeded(*_: Any) -> None:
        before, put_back = states(), _putting_back()
        seed_all(seed if alike else seed + 1)
        start = states()

        def ended() -> None:
            drawn = moved(start, states())
            for name in before:
                if name not in drawn:
                    put_back[name]()

        Variable._execution_engine.queue_callback(ended)

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


def _putting_back() -> dict[str, Callable[[], Any]]:
    """Return what puts each generator back to the state that it has now, by name."""
    found: dict[str, Callable[[], Any]] = {
        of_device(torch.device("cpu")): partial(torch.set_rng_state, torch.get_rng_state()),
        NUMPY: partial(numpy.random.set_state, numpy.random.get_state()),
        PYTHON: partial(random.setstate, random.getstate()),
    }
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch's own
        for index, state in enumerate(torch.cuda.get_rng_state_all()):
            found[of_device(torch.device("cuda", index))] = partial(torch.cuda.set_rng_state, state, index)
    return found
