"""Whether a gradient holds still what a module keeps: of the state that forward moves, it has no derivative.

The old `torch.nn.utils.spectral_norm` improves its two vectors under `no_grad` in each call, and divides by the norm
that they give. An observer moves its range by the numbers of a batch, and rounds them by it. The rule of both is the
derivative with that state in place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import wraps
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from gradspec.law import HOLDS, Finding, Trial
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._reference import moving_state
from gradspec.laws.tensor.support._written import storage_of, tensors_given, with_memory


def holds_state_still(trial: Trial, inputs: Inputs, judged: Callable[[Trial, Inputs], Finding]) -> bool:
    """Return whether the gradients of an audited module are right with what forward writes to its state held still.

    Args:
        trial: the call.
        inputs: its arguments.
        judged: holds the gradients to the derivative of forward.
    """
    if not (names := moving_state(trial.spec)):
        return False
    args = inputs.args()
    with _Writes(_at(inputs, names, args)) as writes:
        trial.spec.surrogate(*args)
    if not writes.values:
        return False

    @wraps(trial.spec.surrogate)
    def still(*args: Any) -> Any:
        with _Writes(_at(inputs, names, args), writes.values):
            return trial.spec.surrogate(*args)

    return judged(replace(trial, spec=replace(trial.spec, surrogate=still)), inputs) is HOLDS


def _at(inputs: Inputs, names: Collection[str], args: tuple[Any, ...]) -> list[Tensor]:
    return [value for name, value in zip(inputs.values, args, strict=True) if name in names]


class _Writes(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types here
    """Keeps what is written to some tensors, or writes what is kept in its place, in the same order."""

    def __init__(self, state: list[Tensor], kept: list[Tensor] | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.values: list[Tensor] = []
        self._state = {storage_of(tensor) for tensor in state}
        self._kept = None if kept is None else iter(kept)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        made = with_memory(func)(*args, **kwargs)
        for is_written, tensor in tensors_given(func, args, kwargs):
            if is_written and storage_of(tensor) in self._state:
                if self._kept is None:
                    self.values.append(tensor.detach().clone())
                else:
                    tensor.detach().copy_(next(self._kept))
        return made
