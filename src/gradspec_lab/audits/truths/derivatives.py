"""Is a gradient the derivative of forward, and a second derivative that of backward? Central differences say."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from gradspec_lab.audits.truths._call import Call, flowing, noise, said

#: The steps of the differences; of each element the one that fits best counts. In float32 smaller ones show rounding.
STEPS = {torch.float64: (1e-2, 1e-3, 1e-4), torch.float32: (1e-2, 1e-3)}
#: An element whose differences do not settle to this, relative, stands at a kink: it says nothing.
SETTLED = {torch.float64: 1e-4, torch.float32: 1e-2}
#: How far a right derivative may be off, relative.
LIMIT = {torch.float64: 1e-5, torch.float32: 2e-3}


def first(call: Call) -> dict[str, str]:
    """Return, for each floating argument, whether its gradient is the derivative of what forward computes.

    "ignored": the gradient is None or zero, and the output moves with the argument.
    """
    v = call.cotangents()
    moving = [y.requires_grad for y in call.run(call.leaves())]

    def value(args: Sequence[Tensor]) -> float:
        leaves = [a.detach().requires_grad_() if k in call.wrt else a for k, a in enumerate(args)]
        y = [t for t, m in zip(call.run(leaves), moving, strict=True) if m]
        return sum(float((t.detach().double() * w.double()).sum()) for t, w in zip(y, v, strict=True))

    try:
        found = call.gradients(v)
    except Exception as error:
        return {call.names[k]: said(error) for k in call.wrt}
    return {
        call.names[k]: _judged(g, *differences(value, call.args, k, _coarsest(v)), absent="ignored")
        for k, g in zip(call.wrt, found, strict=True)
    }


def second(call: Call, *, penalty: bool = False) -> dict[str, str]:
    """Return, for each argument and the cotangents, whether differentiating backward gives the derivative of backward.

    "missing": None, zero or no history, and the gradient moves with it. With `penalty`, the cotangents are constants,
    as in a gradient penalty on the sum of the outputs.
    """
    v = call.cotangents()
    u = [noise(call.args[k], 11 + k) for k in call.wrt]

    def value(args: Sequence[Tensor], w: Sequence[Tensor]) -> float:
        leaves = [a.clone().requires_grad_() if k in call.wrt else a for k, a in enumerate(args)]
        found = call.gradients(w, args=leaves)
        return sum(float((g.double() * d.double()).sum()) for g, d in zip(found, u, strict=True) if g is not None)

    leaves = call.leaves()
    w = [t.clone().requires_grad_(not penalty) for t in v]
    targets = [(call.names[k], leaves[k]) for k in call.wrt]
    targets += [] if penalty else [(f"cotangent {k}", t) for k, t in enumerate(w)]
    try:
        y = flowing(call.run(leaves))
        inputs = [leaves[k] for k in call.wrt]
        got = torch.autograd.grad(y, inputs, w, create_graph=True, allow_unused=True)
        kept = [(g, d) for g, d in zip(got, u, strict=True) if g is not None and g.requires_grad]
        if kept:  # not autograd.grad: with allow_unused it walks around what once_differentiable raises
            torch.autograd.backward([g for g, _ in kept], [d.to(g.dtype) for g, d in kept])
    except Exception as error:
        return {name: said(error) for name, _ in targets}
    answers = {}
    for name, leaf in targets:
        if name in call.names:
            k = call.names.index(name)
            numeric = differences(lambda args: value(args, v), call.args, k, _coarsest(v))
        else:
            k = int(name.split()[-1])
            numeric = differences(lambda ws: value(call.args, ws), v, k, _coarsest(v))
        answers[name] = _judged(leaf.grad, *numeric, absent="missing")
    return answers


def linear(call: Call) -> str:
    """Return whether backward is linear in the cotangent."""
    v, w = call.cotangents(1), call.cotangents(21)
    both = call.gradients([a + 2 * b for a, b in zip(v, w, strict=True)])
    a, b = call.gradients(v), call.gradients(w)
    parts = [None if s is None or t is None else s + 2 * t for s, t in zip(a, b, strict=True)]
    worst = max((float((x - y).abs().max()) for x, y in zip(both, parts, strict=True) if x is not None), default=0.0)
    return "yes" if worst <= 1e-4 else f"no: {worst:.2g}"


def _coarsest(v: Sequence[Tensor]) -> torch.dtype:
    """Return the dtype in which the outputs are rounded."""
    return torch.float32 if any(t.dtype == torch.float32 for t in v) else torch.float64


def differences(
    value: Callable[..., float], at: Sequence[Tensor], k: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor, torch.dtype]:
    """Return the derivative of a number by the k-th tensor, and an error bar: infinite where there is a kink."""
    x = at[k].double()
    numeric, bar = torch.zeros_like(x), torch.full_like(x, float("inf"))

    def moved(element: int, step: float) -> float:
        y = at[k].clone()
        y.view(-1)[element] += step
        return value([*at[:k], y, *at[k + 1 :]])

    for element in range(x.numel()):
        for h in STEPS[dtype]:
            up, down, near, below = (moved(element, s * h) for s in (1, -1, 0.5, -0.5))
            wide, narrow = (up - down) / (2 * h), (near - below) / h
            best = (4 * narrow - wide) / 3
            # At a kink both differences agree, and the two sides do not.
            middle = moved(element, 0.0)
            bend = abs((up - middle) / h - (middle - down) / h)
            error = abs(best - narrow) if bend <= 0.1 * max(1.0, abs(best)) else float("inf")
            if error < bar.view(-1)[element]:
                numeric.view(-1)[element], bar.view(-1)[element] = best, error
    return numeric, bar, dtype


def _judged(found: Tensor | None, numeric: Tensor, bar: Tensor, dtype: torch.dtype, *, absent: str) -> str:
    settled = bar <= SETTLED[dtype] * numeric.abs().clamp(min=1.0)
    if not settled.any():
        return "undecided"
    got = torch.zeros_like(numeric) if found is None else found.detach().double()
    if not got.isfinite().all():
        return "nan"
    apart = ((got - numeric).abs() - 10 * bar)[settled]
    scale = max(1.0, float(numeric[settled].abs().max()))
    if float(apart.max()) <= LIMIT[dtype] * scale:
        return "right" if float(numeric[settled].abs().max()) > 1e-7 else "zero"
    if not got[settled].any():
        return f"{absent}: {'None' if found is None else 'zero'}, and not {float(numeric[settled].abs().max()):.3g}"
    place = int(torch.where(settled, (got - numeric).abs(), 0).argmax())
    return f"wrong: {float(got.view(-1)[place]):.4g}, and not {float(numeric.view(-1)[place]):.4g}"
