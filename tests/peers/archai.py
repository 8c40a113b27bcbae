"""How the published Shake-Shake is held on a CPU: it makes its noise on a GPU alone, so another source stands in."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

FUNCTION = "archai.supergraph.models.shakeshake.shakeshake.ShakeShake"
#: In the record, the same class with the weights that a case gives in place of those that it would draw.
FUNCTION_GIVEN = f"{FUNCTION}, its noise given"
NETWORKS = "archai.supergraph.models.shakeshake"


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

    Backward draws when it runs, so it takes the `beta` of the last call.
    """
    drawn: dict[str, Any] = {}

    class FloatTensor:
        def __init__(self, count: int) -> None:
            self.count = count

        def uniform_(self) -> Tensor:
            return torch.as_tensor(drawn["next"], dtype=torch.float32).reshape(-1).expand(self.count)

    cls.forward.__globals__["torch"] = _Torch(FloatTensor)

    def mix_branches(x1: Tensor, x2: Tensor, alpha: Any, beta: Any) -> Tensor:
        drawn["next"] = alpha
        y: Tensor = cls.apply(x1, x2, True)
        drawn["next"] = beta
        return y

    return mix_branches


def on_the_cpu(network: Any) -> Any:
    """Return a published module whose noise comes from `torch.FloatTensor`."""
    function = network.__init__.__globals__["ShakeShake"]
    function.forward.__globals__["torch"] = _Torch(torch.FloatTensor)
    return network
