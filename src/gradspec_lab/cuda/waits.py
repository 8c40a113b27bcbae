"""How often the host waits for the device in forward and backward of what users call: each wait drains the GPU."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from gradspec import functions, operators
from gradspec.nn import MODULES
from gradspec.spec import ModuleSpec

#: What torch says of each operation that makes the host wait.
WAITS = re.compile("synchronizing CUDA operation")
NEVER = "not measured"

Call = Callable[[], Any]


def measure(device: str) -> Iterator[dict[str, Any]]:
    """Yield for each function, operator and network how often the host waits, in training; both passes apart."""
    for name, make in (*_functions(device).items(), *((spec.name, _trained(spec, device)) for spec in MODULES)):
        try:
            yield {"name": name, **_both(make(), device)}
        except Exception as error:
            yield {"name": name, "error": f"{type(error).__name__}: {error}".partition("\n")[0]}


def _functions(device: str) -> dict[str, Callable[[], Call]]:
    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, device=device)

    def leaf(*shape: int) -> Tensor:
        return draw(*shape).requires_grad_()

    def rows(size: int) -> Tensor:
        return torch.arange(32, device=device) % size

    params, share = torch.tensor([0.07, 0.5], device=device), torch.full((32, 1, 1, 1), 0.25, device=device)

    def bank(loss: Callable[..., Tensor]) -> Callable[[], Call]:
        def make() -> Call:
            x, y, memory = leaf(32, 16), rows(1000), draw(1000, 16)
            return lambda: loss(x, y, memory, 0.07)

        return make

    def scaled(scale: Callable[..., Tensor]) -> Callable[[], Call]:
        def make() -> Call:
            x = leaf(32, 16)
            return lambda: scale(x, 0.5)

        return make

    def classes() -> Call:
        x, weight, target = leaf(32, 16), leaf(1000, 16), rows(1000)
        return lambda: functions.linear_cross_entropy(x, weight, target, temperature=0.07)

    def mixed(mix: Callable[..., Tensor], *further: Any) -> Callable[[], Call]:
        def make() -> Call:
            first, second = leaf(32, 8, 4, 4), leaf(32, 8, 4, 4)
            return lambda: mix(first, second, *further)

        return make

    def compared() -> Call:
        x, y, memory = leaf(32, 16), rows(1000), draw(1000, 16)
        return lambda: functions.LinearAverageOp.apply(x, y, memory, params)

    return {
        "GradFactor.apply": scaled(functions.GradFactor.apply),
        "GradMultiply.apply": scaled(functions.GradMultiply.apply),
        "ShakeShake.apply": mixed(functions.ShakeShake.apply, True),
        "LinearAverageOp.apply": compared,
        "instance_discrimination_loss": bank(functions.instance_discrimination_loss),
        "linear_cross_entropy": classes,
        "operators.grad_factor": scaled(operators.grad_factor),
        "operators.shake_shake": mixed(operators.shake_shake, share, share),
        "operators.instance_discrimination_loss": bank(operators.instance_discrimination_loss),
    }


def _trained(spec: ModuleSpec, device: str) -> Callable[[], Call]:
    """Return what makes a call of a network in training, of the first case that is called."""

    def make() -> Call:
        from gradspec.spec._kinds import maker_of

        case: Any = next(case for case in spec.cases(maker_of(spec.kind)(0, device)) if getattr(case, "inputs", None))
        module: nn.Module = spec.module(*case.args, **case.kwargs)
        floating = next(t for t in case.inputs if isinstance(t, Tensor) and t.is_floating_point())
        module.to(floating.device, floating.dtype).train()
        inputs = [t.detach().requires_grad_() if t is floating else t for t in case.inputs]
        return lambda: module(*inputs)

    return make


def _both(call: Call, device: str) -> dict[str, Any]:
    """Return how often the host waits in each pass; the first call, which loads kernels, is not counted."""
    for _ in range(2):
        _backward(call())
    if not device.startswith("cuda"):
        return {"forward": NEVER, "backward": NEVER}
    y, forward = _counted(call)
    v = torch.randn_like(y)
    torch.cuda.synchronize()
    _, backward = _counted(lambda: torch.autograd.backward(y, v))
    places = dict.fromkeys((*forward, *backward))
    return {"forward": len(forward), "backward": len(backward), **({"where": list(places)} if places else {})}


def _backward(y: Tensor) -> None:
    torch.autograd.backward(y, torch.randn_like(y))


def _counted(call: Call) -> tuple[Any, list[str]]:
    """Return what a call returns, and the place of each wait in it: a file of ours or torch's, and the line."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            result = call()
        finally:
            torch.cuda.set_sync_debug_mode(before)
    waits = [one for one in said if WAITS.search(str(one.message))]
    return result, [f"{_shown(one.filename)}:{one.lineno}" for one in waits]


def _shown(file: str) -> str:
    """Return the path of a file without the folders of the machine."""
    return file.rpartition("site-packages/")[2].rpartition("src/")[2]
