"""Measure the effects of a call beside its value: writes, shared memory, noise, what it keeps."""

from __future__ import annotations

import gc
import random
import weakref
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gradspec_lab.audits.truths._call import Call, flowing, noise, tensors

#: How often a call is repeated: a coin may fall alike once.
AGAIN = 8


def writes(call: Call) -> dict[str, str]:
    """Return which arguments and cotangents forward or backward writes to: by bits, and by the version counter."""
    leaves = call.leaves()
    given = [*map(_copy, leaves)]
    watched = {call.names[k]: a for k, a in enumerate(given) if isinstance(a, Tensor)}
    torch.manual_seed(0)
    answers: dict[str, str] = {}
    before = _photo(watched)
    y = flowing(tensors(call.cls.apply(*given)))
    _note(answers, watched, before, "forward")
    v = {f"cotangent {k}": noise(t, k) for k, t in enumerate(y)}
    before, seen = _photo(watched), _photo(v)
    if y:
        torch.autograd.grad(y, [leaves[k] for k in call.wrt], list(v.values()), allow_unused=True)
    _note(answers, watched, before, "backward")
    _note(answers, v, seen, "backward")
    return answers


def _photo(watched: dict[str, Tensor]) -> dict[str, tuple[Tensor, int]]:
    return {name: (t.detach().clone(), t._version) for name, t in watched.items()}


def _note(
    answers: dict[str, str], watched: dict[str, Tensor], before: dict[str, tuple[Tensor, int]], when: str
) -> None:
    for name, t in watched.items():
        bits, version = before[name]
        same = t.shape == bits.shape and torch.equal(t.detach().nan_to_num(), bits.nan_to_num())
        if not same or t._version != version:
            said = "new values" if not same else "the same values"
            told = "the version counter moves" if t._version != version else "the version counter does not move"
            answers[name] = f"{when}: {said}, {told}"


def shares(call: Call) -> dict[str, str]:
    """Return which outputs share memory with an argument, and whether autograd knows: by writing to the output."""
    answers = {}
    given = [*map(_copy, call.leaves())]
    torch.manual_seed(0)
    for n, y in enumerate(tensors(call.cls.apply(*given))):
        for k, a in enumerate(given):
            if isinstance(a, Tensor) and _overlap(y, a):
                version = a._version
                with torch.no_grad():
                    y.add_(0) if not y.is_leaf or not y.requires_grad else y.detach().add_(0)
                known = "tracked" if a._version != version else "untracked"
                answers[f"output {n}"] = f"{known}, with {call.names[k]}"
    return answers


def _overlap(a: Tensor, b: Tensor) -> bool:
    def span(t: Tensor) -> tuple[int, int]:
        reach = sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) + 1
        return t.data_ptr(), t.data_ptr() + reach * t.element_size()

    if not a.numel() or not b.numel():
        return False
    (i, j), (k, m) = span(a), span(b)
    return i < m and k < j


def draws(call: Call) -> dict[str, str]:
    """Return what forward and backward draw: whether results differ, and whether a generator moves."""
    args, states = call.leaves(), _states()
    results = [tensors(call.cls.apply(*map(_copy, args))) for _ in range(AGAIN)]
    differ = not all(all(map(_equal, results[0], again)) for again in results)
    answers = {"forward": _drawn(differ, states)}
    if y := flowing(results[0]):
        v, inputs, states = [noise(t, k) for k, t in enumerate(y)], [args[k] for k in call.wrt], _states()
        passes = [
            torch.autograd.grad(y, inputs, [t.clone() for t in v], allow_unused=True, retain_graph=True)
            for _ in range(2)
        ]
        differ = any(a is not None and b is not None and not _equal(a, b) for a, b in zip(*passes, strict=True))
        answers["backward"] = _drawn(differ, states)
    return answers


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _equal(a: Tensor, b: Tensor) -> bool:
    return torch.equal(a.detach().nan_to_num(), b.detach().nan_to_num())


def _states() -> list[Any]:
    return [torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()]


def _drawn(differ: bool, before: list[Any]) -> str:
    now = _states()
    moved = [
        name
        for name, same in (
            ("torch", torch.equal(before[0], now[0])),
            ("random", before[1] == now[1]),
            ("numpy", bool((before[2] == now[2]).all())),
        )
        if not same
    ]
    if not moved and not differ:
        return "no"
    return f"{'results differ' if differ else 'results agree'}, generators moved: {', '.join(moved) or 'none'}"


def kept(call: Call) -> dict[str, Any]:
    """Return the tensors on ctx outside the saved ones, and whether the output is freed without the collector."""
    y = flowing(call.run(call.leaves()))
    held = sorted(n for t in y[:1] for n, v in getattr(t.grad_fn, "__dict__", {}).items() if isinstance(v, Tensor))
    del y
    gc.collect()
    gc.disable()
    try:
        y = flowing(call.run(call.leaves()))
        watch = [weakref.ref(t) for t in y]
        del y
        freed = all(w() is None for w in watch)
    finally:
        gc.enable()
        gc.collect()
    return {"ctx": held, "freed": freed}
