"""Does it matter how inputs and cotangents lie in memory, which dtype they have, and what else is asked for?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint as checkpointed

from gradspec_lab.audits.truths._call import SEED, Call, apart, compared, flowing, noise, said, tensors


def strided(t: Tensor) -> Tensor:
    """Return the same values in another layout."""
    return t.mT.contiguous().mT if t.dim() > 1 else torch.stack([t, t], -1)[..., 0]


def layout(call: Call) -> str:
    """Return whether inputs in another layout give the same values and gradients."""

    def measured(arrange: Callable[[Tensor], Tensor]) -> list[Tensor | None]:
        return [*call.run(call.leaves(), arrange), *call.gradients(arrange=arrange)]

    return _tried(lambda: compared(measured(strided), measured(lambda t: t)))


def cotangent_layout(call: Call) -> dict[str, str]:
    """Return whether strided and expanded cotangents give the gradients of contiguous ones."""
    v = call.cotangents()
    ones = [torch.ones_like(t) for t in v]
    wide = [torch.ones((), dtype=t.dtype).expand(t.shape) for t in v]
    return {
        "strided": _tried(lambda: compared(call.gradients([strided(t) for t in v]), call.gradients(v))),
        "expanded": _tried(lambda: compared(call.gradients(wide), call.gradients(ones))),
    }


def retained(call: Call) -> str:
    """Return whether v, w and v again over one graph give what each gives over a graph of its own."""
    v, w = call.cotangents(1), call.cotangents(21)
    own = [call.gradients(v), call.gradients(w), call.gradients(v)]

    def over_one_graph() -> str:
        args = call.leaves()
        y, inputs = flowing(call.run(args)), [args[k] for k in call.wrt]
        found = []
        for t in (v, w, v):
            torch.manual_seed(SEED)
            again = torch.autograd.grad(y, inputs, [s.clone() for s in t], retain_graph=True, allow_unused=True)
            found.append([None if g is None else g.clone() for g in again])
        answers = [compared(a, b) for a, b in zip(found, own, strict=True)]
        return next((answer for answer in answers if answer != "same"), "same")

    return _tried(over_one_graph)


def alone(call: Call) -> dict[str, str]:
    """Return whether a gradient that is asked for alone, or of one output alone, is that of all together.

    "values": whether a call of which no gradient is asked gives the same values.
    """
    without = call.run([a.detach() if isinstance(a, Tensor) else a for a in call.args])
    together, answers = call.gradients(), {"values": compared(without, call.run(call.leaves()))}
    for place, k in enumerate(call.wrt):

        def one(place: int = place, k: int = k) -> str:
            args = [a.detach() if isinstance(a, Tensor) and n != k else a for n, a in enumerate(call.leaves())]
            y = flowing(call.run(args))
            if not y:
                return "same" if together[place] is None else "differs: no gradient"
            v = [noise(t, 1 + n) for n, t in enumerate(y)]
            return compared(torch.autograd.grad(y, args[k], v, allow_unused=True), [together[place]])

        answers[call.names[k]] = _tried(one)
    v = call.cotangents()
    for n in range(len(v) if len(v) > 1 else 0):

        def output(n: int = n) -> str:
            args = call.leaves()
            y = flowing(call.run(args))[n]
            found = torch.autograd.grad(y, [args[k] for k in call.wrt], v[n], allow_unused=True)
            rest = [t if k == n else torch.zeros_like(t) for k, t in enumerate(v)]
            return compared(found, call.gradients(rest))

        answers[f"output {n}"] = _tried(output)
    return answers


def dtypes(call: Call) -> dict[str, dict[str, str]]:
    """Return, for each floating dtype, the dtypes of the outputs and raw gradients, and how far they are off."""
    try:
        exact = [*call.run(call.leaves()), *call.gradients()]
    except Exception as error:
        return {"float64": {"call": said(error)}}
    answers = {}
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        try:
            args = call.leaves(lambda t, dtype=dtype: t.to(dtype))
            y = call.run(args)
            with Returned(call.cls) as returned:
                found = call.gradients([noise(t, 1 + k) for k, t in enumerate(flowing(y))], args=args)
        except Exception as error:
            answers[str(dtype)[6:]] = {"call": said(error)}
            continue
        floating = [t for t in y if t.is_floating_point()]
        answers[str(dtype)[6:]] = {
            "outputs": ", ".join(sorted({str(t.dtype)[6:] for t in floating})),
            "raw gradients": returned.against(args),
            "off by": f"{apart([*y, *found], exact):.1e}",
        }
    return answers


class Returned:
    """What backward returns, before torch repairs it."""

    def __init__(self, cls: Any) -> None:
        self.cls, self.values = cls, ()

    def __enter__(self) -> Returned:
        backward, self.own = self.cls.backward, self.cls.__dict__.get("backward")

        def watched(ctx: Any, *grads: Any) -> Any:
            values = backward(ctx, *grads)
            self.values = values if isinstance(values, tuple) else (values,)
            return values

        self.cls.backward = staticmethod(watched)
        return self

    def __exit__(self, *error: object) -> None:
        if self.own is None:
            del self.cls.backward
        else:
            self.cls.backward = self.own

    def against(self, args: list[Any]) -> str:
        """Return "exact", or the first gradient that has not the shape and dtype of its argument."""
        for k, (g, a) in enumerate(zip(self.values, args, strict=False)):
            if isinstance(g, Tensor) and isinstance(a, Tensor) and (g.dtype, g.shape) != (a.dtype, a.shape):
                return f"{k}: {str(g.dtype)[6:]}{list(g.shape)} for {str(a.dtype)[6:]}{list(a.shape)}"
        return "exact"


def edges(call: Call) -> dict[str, str]:
    """Return what a call with nothing in the first dimension gives, and one with 0-d tensors."""
    rows = next(a.shape[0] for a in call.args if isinstance(a, Tensor) and a.dim())

    def run(change: Callable[[Tensor], Tensor]) -> str:
        args = [
            change(a).detach().clone().requires_grad_(k in call.wrt) if isinstance(a, Tensor) else a
            for k, a in enumerate(call.args)
        ]
        found = call.gradients(args=args)
        expected = [args[k].shape for k in call.wrt]
        if any(g is not None and g.shape != s for g, s in zip(found, expected, strict=True)):
            return "another shape"
        return "nan" if any(g is not None and not g.isfinite().all() for g in found) else "works"

    return {
        "empty": _tried(lambda: run(lambda t: t[:0] if t.dim() and t.shape[0] == rows else t)),
        "0-d": _tried(lambda: run(lambda t: t.reshape(-1)[0] if t.dim() else t)),
    }


def checkpoint(call: Call) -> str:
    """Return whether activation checkpointing gives the same values and gradients."""

    def run() -> str:
        args = call.leaves()
        torch.manual_seed(SEED)
        y = tensors(checkpointed(lambda *a: call.cls.apply(*a), *[_copy(a) for a in args], use_reentrant=False))
        out = flowing(y)
        v = [noise(t, 1 + k) for k, t in enumerate(out)]
        found = torch.autograd.grad(out, [args[k] for k in call.wrt], v, allow_unused=True)
        return compared([*y, *found], [*call.run(call.leaves()), *call.gradients()])

    return _tried(run)


def autocast(call: Call) -> str:
    """Return whether float32 inputs under autocast to bfloat16 give values and gradients within its precision."""

    def run() -> str:
        args = call.leaves(lambda t: t.float())
        with torch.autocast("cpu", torch.bfloat16):
            y = call.run(args)
        out = flowing(y)
        v = [noise(t, 1 + k) for k, t in enumerate(out)]
        found = torch.autograd.grad(out, [args[k] for k in call.wrt], v, allow_unused=True)
        return compared([*y, *found], [*call.run(call.leaves()), *call.gradients()], limit=0.05)

    return _tried(run)


def batched(call: Call) -> str:
    """Return whether a batch of cotangents in one backward pass gives what the passes one by one give."""
    v, w = call.cotangents(1), call.cotangents(21)

    def run() -> str:
        args = call.leaves()
        y, inputs = flowing(call.run(args)), [args[k] for k in call.wrt]
        both = [torch.stack(pair) for pair in zip(v, w, strict=True)]
        found = torch.autograd.grad(y, inputs, both, is_grads_batched=True, allow_unused=True)
        one = zip(call.gradients(v), call.gradients(w), strict=True)
        return compared(found, [None if a is None or b is None else torch.stack([a, b]) for a, b in one])

    return _tried(run)


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _tried(run: Callable[[], str]) -> str:
    try:
        return run()
    except Exception as error:
        return said(error)
