"""A function that draws noise, held still: each call draws from one state of the generators, and so does its backward.

A generator from which backward did not draw is as it was once backward has ended: setting a state is not a draw, and a
law that watches the generators must name the one that was drawn from.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Literal

import numpy
import torch
from torch import Tensor
from torch.autograd import Variable
from torch.utils._python_dispatch import _disable_current_modes

from gradspec.laws.tensor.support._call import outputs
from gradspec.laws.tensor.support._generators import NUMPY, PYTHON, moved, of_device, seed_all, states

#: From which state backward draws: another one than forward's, that in which forward ended, or forward's own.
Backward = Literal["", "other", "after", "alike"]


def held_still(
    call: Callable[..., Any],
    seed: int,
    *,
    forward: bool,
    backward: Backward = "",
    given: dict[torch.Generator, Tensor] | None = None,
) -> Callable[..., Any]:
    """Return the call with its noise fixed, of forward, of backward, or of both.

    Args:
        call: what draws.
        seed: of the state from which each call of forward draws.
        forward: whether forward draws.
        backward: how backward draws. Other numbers than forward, as it does in training: a mask that backward draws for
            itself must not be that of forward by the grace of a seed; it is so with `alike`, which shows whether that
            is what is wrong. With `after` the numbers are those that a call of forward would draw next, so that a
            surrogate can draw them too.
        given: the generators among the arguments, and the state in which each call finds them.
    """

    @wraps(call, assigned=("__doc__",), updated=())
    def still(*args: Any, **kwargs: Any) -> Any:
        with _disable_current_modes():  # a state is read as it is where tensors are fake
            for generator, state in (given or {}).items():
                generator.set_state(state)
            if forward:
                seed_all(seed)
        y = call(*args, **kwargs)
        if backward and not _is_transformed():
            with _disable_current_modes():
                ended = putting_back() if backward == "after" else {}
            hook = partial(_before_backward, seed if backward == "alike" else seed + 1, ended)
            for t in outputs(y):
                if isinstance(t, Tensor) and t.requires_grad:
                    t.register_hook(hook)  # type: ignore[no-untyped-call]  # it runs right before the backward pass
        return y

    return still


def _before_backward(seed: int, ended: dict[str, Callable[[], Any]], *_: Any) -> None:
    """Set the state from which backward draws: that in which forward ended, or else that of a seed."""
    with _disable_current_modes():
        before, put_back = states(), putting_back()
        if ended:
            for restore in ended.values():
                restore()
        else:
            seed_all(seed)
        start = states()

    def after() -> None:
        with _disable_current_modes():
            drawn = moved(start, states())
            for name in before:
                if name not in drawn:
                    put_back[name]()

    Variable._execution_engine.queue_callback(after)


def _is_transformed() -> bool:
    """Whether a transform of torch.func is running, whose tensors take no hook."""
    return torch._C._functorch.maybe_current_level() is not None


def putting_back() -> dict[str, Callable[[], Any]]:
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
