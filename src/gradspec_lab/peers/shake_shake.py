"""How the published Shake-Shake is held on a CPU: it makes its noise on a GPU alone, so another source stands in."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradspec.spec import Noise


class _Torch:
    """torch, but for `torch.cuda.FloatTensor`."""

    def __init__(self, float_tensor: Any) -> None:
        self.cuda = SimpleNamespace(FloatTensor=float_tensor)

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


def as_published(cls: Any) -> Callable[..., Any]:
    """Return the call of the class as it is: it draws its weights, so those of the case are left aside."""
    return lambda x1, x2, alpha, beta: cls.apply(x1, x2, True)


def given(cls: Any) -> Callable[..., Any]:
    """Return the class as a function of its noise: forward draws `alpha`, and backward draws `beta`.

    Backward draws when it runs: it takes the `beta` of its own call, or where it is compiled that of the last one.
    """
    weight: dict[str, Any] = {}

    class FloatTensor:
        def __init__(self, count: int) -> None:
            self.count = count

        def uniform_(self) -> Tensor:
            return torch.as_tensor(weight["next"], dtype=torch.float32).reshape(-1).expand(self.count)

    cls.forward.__globals__["torch"] = _Torch(FloatTensor)

    def mix_branches(x1: Tensor, x2: Tensor, alpha: Any, beta: Any) -> Tensor:
        weight["next"] = alpha
        y: Tensor = cls.apply(x1, x2, True)
        weight["next"] = beta
        if y.grad_fn is not None and not torch.compiler.is_compiling():
            y.grad_fn.register_prehook(lambda _: weight.update(next=beta))
        return y

    return mix_branches


def drawn(noise: Noise, cls: Any) -> Noise:
    """Return the forms of the class that draw, and evaluate, in place of ours."""
    cls.forward.__globals__["torch"] = _Torch(torch.FloatTensor)
    return replace(
        noise,
        drawing=lambda x1, x2: cls.apply(x1, x2),
        evaluation=lambda x1, x2: cls.apply(x1, x2, False),
    )


def on_the_cpu(network: Any) -> Any:
    """Return a published module whose noise comes from `torch.FloatTensor`."""
    function = network.__init__.__globals__["ShakeShake"]
    function.forward.__globals__["torch"] = _Torch(torch.FloatTensor)
    return network
