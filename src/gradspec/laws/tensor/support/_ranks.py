"""A mesh of two ranks in one process: each tensor of a rank is computed, and no message leaves the process.

torch simulates the ranks by `torch.distributed._local_tensor`, which is private: where a torch lacks it, nothing is
simulated. What is here of tensors on ranks is the same for real ones.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from gradspec.law import shown

#: How many ranks a mesh has here.
RANKS = 2
#: The placement of a plain tensor.
PLAIN = "a plain tensor"
#: Why there are no ranks where somebody else has some.
GROUP_EXISTS = "a process group exists already, and the ranks of this law need one of their own"


class UnsimulatedError(Exception):
    """There can be no ranks here, or none on which the function can be called."""


@contextmanager
def simulated_mesh(device_type: str) -> Iterator[Any]:
    """Yield a mesh of simulated ranks; its process group ends with it.

    Raises:
        UnsimulatedError: torch cannot simulate ranks, or not a call that was made on them.
    """
    try:
        from torch.distributed._local_tensor import LocalTensorMode
        from torch.distributed.device_mesh import init_device_mesh
        from torch.testing._internal.distributed.fake_pg import FakeStore
    except ImportError as error:
        raise UnsimulatedError(f"torch {torch.__version__} simulates no ranks: {error}") from error
    if torch.distributed.is_initialized():
        raise UnsimulatedError(GROUP_EXISTS)
    torch.distributed.init_process_group("fake", rank=0, world_size=RANKS, store=FakeStore())
    try:
        with LocalTensorMode(RANKS):
            yield init_device_mesh(device_type, (RANKS,))
    except Exception as error:
        if is_of_simulation(error):
            raise UnsimulatedError(f"torch's simulated ranks refuse it: {type(error).__name__}: {error}") from error
        raise
    finally:
        torch.distributed.destroy_process_group()
        forget_sizes()


def is_of_simulation(error: Exception) -> bool:
    """Whether torch's simulated ranks raised an error, not the function."""
    is_within = "_local_tensor" in traceback.extract_tb(error.__traceback__)[-1].filename
    return is_within or "LocalIntNode" in shown(error)  # a number that differs between ranks


def forget_sizes() -> None:
    """Clear what DTensor keeps of earlier calls: local sizes of simulated ranks, or of one real rank, are among it."""
    if "torch.distributed.tensor" in sys.modules:
        from torch.distributed.tensor import debug

        getattr(debug, "_clear_sharding_prop_cache", lambda: None)()


def off_ranks() -> AbstractContextManager[Any]:
    """Return the context in which plain tensors are those of this process; on simulated ranks they belong to a rank."""
    try:
        from torch.distributed._local_tensor import maybe_disable_local_tensor_mode
    except ImportError:
        return nullcontext()
    return maybe_disable_local_tensor_mode()


def placed(tensor: Tensor, placement: str, mesh: Any) -> Tensor:
    """Return a whole tensor as a DTensor: "shard(0)", "replicate" or "partial" (each rank has a part)."""
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

    if placement == "partial":
        parts = torch.stack([tensor * share for share in (0.25, 0.75)])
        part = cast(Any, distribute_tensor(parts, mesh, [Shard(0)])).to_local()[0]
        return DTensor.from_local(part, mesh, [Partial()])
    by_word = Replicate() if placement == "replicate" else Shard(dimension_of(placement))
    return distribute_tensor(tensor, mesh, [by_word])


def dimension_of(placement: str) -> int:
    """Return the dimension of "shard(0)"."""
    return int(placement[len("shard(") : -1])


def placement_of(tensor: Any) -> str:
    """Return how a tensor is placed, in the words of a spec; `PLAIN` if it is not a DTensor."""
    if not is_dtensor(tensor):
        return PLAIN
    (placement,) = tensor.placements
    if placement.is_shard():
        return f"shard({placement.dim})"
    return "replicate" if placement.is_replicate() else "partial"


def is_dtensor(tensor: Any) -> bool:
    """Whether a tensor is a DTensor; nothing is imported to know it."""
    return type(tensor).__name__ == "DTensor"


def on_each_rank(tensor: Any) -> list[Tensor | None]:
    """Return what each rank takes for the whole of a tensor, the pending sums made; all real ranks make this call.

    None is for no tensor at all, such as a gradient that does not flow.
    """
    whole: Any = None if tensor is None else tensor.detach()
    if is_dtensor(whole):
        whole = whole.full_tensor()
    if hasattr(whole, "_local_tensors"):
        return list(whole._local_tensors.values())
    return exchange(whole)


class RefusedElsewhereError(Exception):
    """Another real rank has refused the call that this one makes."""


@dataclass(frozen=True)
class _Refusal:
    """What a rank gives that has refused a call, in place of what is asked for."""

    raised: str


def exchange(mine: Any = None) -> list[Any]:
    """Return what each real rank gives, in their order; simulated ranks give it together.

    Raises:
        RefusedElsewhereError: one of them called `refuse` instead.
    """
    found = _gathered(mine) if _are_real() else [mine]
    for rank, one in enumerate(found):
        if isinstance(one, _Refusal):
            raise RefusedElsewhereError(f"on rank {rank} raised {one.raised}")
    return found


def refuse(error: Exception) -> None:
    """Tell the other real ranks, which come to their next `exchange`, that this one leaves the call with an error."""
    if _are_real() and not isinstance(error, RefusedElsewhereError):
        _gathered(_Refusal(shown(error)))


def _are_real() -> bool:
    return torch.distributed.is_initialized() and torch.distributed.get_backend() != "fake"


def _gathered(mine: Any) -> list[Any]:
    found = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(found, mine)
    return found
