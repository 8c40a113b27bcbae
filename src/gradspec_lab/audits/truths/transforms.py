"""Measure a call under torch.func, torch.compile and torch.export against eager mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from gradspec_lab.audits.truths._call import SEED, Call, compared, flowing, noise, said, tensors
from gradspec_lab.audits.truths.derivatives import linear


def answers(call: Call) -> dict[str, str]:
    """Return, for each transform, "same" as the eager call, "differs" or the error that refuses it."""
    questions: dict[str, Callable[[Call], str]] = {
        "func.grad": lambda c: _func_grad(c, lambda f: f),
        "vmap": lambda c: _vmap(c, lambda f: f),
        "func.jvp": lambda c: _jvp(c, lambda f: f),
        "compile": lambda c: _called(c, lambda f: _compiled(f)),
        "compile with breaks": lambda c: _called(c, lambda f: torch.compile(f, backend="aot_eager")),
        "compiled func.grad": lambda c: _func_grad(c, _compiled),
        "compiled vmap": lambda c: _vmap(c, _compiled),
        "compiled func.jvp": lambda c: _jvp(c, _compiled),
        "fake": _fake,
    }
    return _asked(call, questions)


def exports(call: Call) -> dict[str, str]:
    """Return what torch.export makes of a call: of inputs that need a gradient, and of inputs that need none."""
    ways = [(strict, leaves) for strict in (False, True) for leaves in (False, True)]
    return _asked(
        call,
        {
            f"{'strict' if strict else 'not strict'}, {'leaves' if leaves else 'constants'}": partial(
                _exported, strict=strict, leaves=leaves
            )
            for strict, leaves in ways
        },
    )


def _asked(call: Call, questions: Mapping[str, Callable[[Call], str]]) -> dict[str, str]:
    found = {}
    for name, ask in questions.items():
        torch._dynamo.reset()
        try:
            found[name] = ask(call)
        except Exception as error:
            found[name] = said(error)
    return found


def _compiled(f: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(f, backend="aot_eager", fullgraph=True)


def _closed(call: Call) -> Callable[..., Any]:
    """Return the function of its tensors alone."""
    places = [k for k, a in enumerate(call.args) if isinstance(a, Tensor)]

    def closed(*given: Tensor) -> Any:
        args = list(call.args)
        for k, t in zip(places, given, strict=True):
            args[k] = t
        return call.cls.apply(*args)

    return closed


def _given(call: Call) -> list[Tensor]:
    return [a for a in call.leaves() if isinstance(a, Tensor)]


def _measured(call: Call, f: Callable[..., Any], leaves: Sequence[Tensor]) -> list[Tensor | None]:
    """Return the values and the gradients of a call of the closed function."""
    torch.manual_seed(SEED)
    y = tensors(f(*[t.clone() for t in leaves]))
    out = flowing(y)
    inputs = [t for t in leaves if t.requires_grad]
    v = [noise(t, 1 + k) for k, t in enumerate(out)]
    found = torch.autograd.grad(out, inputs, v, allow_unused=True) if out else [None] * len(inputs)
    return [*y, *found]


def _called(call: Call, change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> str:
    f = _closed(call)
    return compared(_measured(call, change(f), _given(call)), _measured(call, f, _given(call)))


def _func_grad(call: Call, change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> str:
    f, given = _closed(call), [t.detach() for t in _given(call)]
    moving = [y.requires_grad for y in call.run(call.leaves())]
    v = call.cotangents()
    places = tuple(k for k, t in enumerate(given) if t.is_floating_point())

    def loss(*args: Tensor) -> Tensor:
        y = [t for t, m in zip(tensors(f(*args)), moving, strict=True) if m]
        return sum((t * w).sum() for t, w in zip(y, v, strict=True))  # type: ignore[return-value]

    torch.manual_seed(SEED)
    found = change(torch.func.grad(loss, argnums=places))(*[t.clone() for t in given])
    return compared(found, call.gradients(v))


def _vmap(call: Call, change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> str:
    """Hold a batch of two samples, the second a little beside the first, to the two calls."""
    f = _closed(call)
    one = [t.detach() for t in _given(call)]
    two = [t * 0.9 if t.is_floating_point() else t for t in one]
    leaves = [torch.stack(pair).requires_grad_(pair[0].is_floating_point()) for pair in zip(one, two, strict=True)]
    y = tensors(change(torch.vmap(f))(*[t.clone() for t in leaves]))
    single = [tensors(f(*[t[k].clone() for t in leaves])) for k in range(2)]
    loop = [torch.stack([single[0][n], single[1][n]]) for n in range(len(single[0]))]
    values = compared(y, loop)
    out = [(a, b) for a, b in zip(y, loop, strict=True) if b.requires_grad]
    if values != "same" or not out:
        return values
    if not all(a.requires_grad for a, _ in out):
        return "differs: no gradient"
    v = [noise(b, 1 + k) for k, (_, b) in enumerate(out)]
    inputs = [t for t in leaves if t.requires_grad]
    found = torch.autograd.grad([a for a, _ in out], inputs, v, allow_unused=True)
    expected = torch.autograd.grad([b for _, b in out], inputs, v, allow_unused=True)
    return compared(found, expected)


def _jvp(call: Call, change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> str:
    """Hold the tangent to the rows of the Jacobian that backward gives, times the direction."""
    if linear(call) != "yes":
        return "not measured: backward is not linear, so there is no Jacobian"
    f, given = _closed(call), [t.detach() for t in _given(call)]
    floating = [k for k, t in enumerate(given) if t.is_floating_point()]
    places = [k for k, g in zip(floating, call.gradients(), strict=True) if g is not None]
    direction = [noise(given[k], 31 + k) for k in places]

    def moving(*xs: Tensor) -> list[Tensor]:
        args = list(given)
        for k, x in zip(places, xs, strict=True):
            args[k] = x
        return [t for t in tensors(f(*args)) if t.is_floating_point()]

    def tangent(xs: tuple[Tensor, ...], us: tuple[Tensor, ...]) -> Any:
        return torch.func.jvp(moving, xs, us)[1]

    found = tensors(change(tangent)(tuple(given[k].clone() for k in places), tuple(direction)))
    args = call.leaves()
    inputs = [a for a in args if isinstance(a, Tensor)]
    inputs = [inputs[k] for k in places]
    expected = []
    for y in (t for t in call.run(args) if t.is_floating_point()):
        row = torch.zeros_like(y)
        for element in range(y.numel() if y.requires_grad else 0):
            v = torch.zeros_like(y)
            v.view(-1)[element] = 1
            g = torch.autograd.grad(y, inputs, v, retain_graph=True, allow_unused=True)
            row.view(-1)[element] = sum(
                float((a * u).sum()) for a, u in zip(g, direction, strict=True) if a is not None
            )
        expected.append(row)
    return compared(found, expected)


def _exported(call: Call, *, strict: bool, leaves: bool) -> str:
    f = _closed(call)

    class Module(torch.nn.Module):
        def forward(self, *args: Tensor) -> Any:
            return f(*args)

    given = _given(call)
    shown = tuple(given if leaves else (t.detach() for t in given))
    program = torch.export.export(Module(), shown, strict=strict).module()
    return compared(_measured(call, program, given), _measured(call, f, _given(call)))


def _fake(call: Call) -> str:
    def facts(given: list[Tensor]) -> list[str]:
        leaves = [t.requires_grad_(t.is_floating_point()) for t in given]
        y = tensors(_closed(call)(*[t.clone() for t in leaves]))
        out, inputs = flowing(y), [t for t in leaves if t.requires_grad]
        found = torch.autograd.grad(out, inputs, [torch.ones_like(t) for t in out], allow_unused=True) if out else ()
        return ["None" if t is None else f"{t.dtype} {list(t.shape)} {_strides(t)}" for t in (*y, *found)]

    given, real = [t.detach() for t in _given(call)], facts([t.detach() for t in _given(call)])
    with FakeTensorMode() as mode:
        fake = facts([mode.from_tensor(t) for t in given])
    apart = [f"{a}, and not {b}" for a, b in zip(fake, real, strict=True) if a != b]
    return f"differs: {apart[0]}" if apart else "same"


def _strides(t: Tensor) -> list[int]:
    """Return the strides that say something: not those of a dimension of one element."""
    return [s for s, n in zip(t.stride(), t.shape, strict=True) if n > 1]
