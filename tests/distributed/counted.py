"""What a rank holds, and what it sends: counted, operator by operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.functional import normalize
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from gradspec.functions import linear_cross_entropy
from gradspec.nn import LinearAverage


class Held(TorchDispatchMode):
    """The bytes of all storages that an operator has made and that still live, at the most."""

    def __init__(self) -> None:
        super().__init__()
        self.live: dict[int, tuple[StorageWeakRef, int]] = {}
        self.peak = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if isinstance(leaf, Tensor):
                storage = (leaf._local_tensor if isinstance(leaf, DTensor) else leaf).untyped_storage()
                self.live[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        self.live = {key: (held, size) for key, (held, size) in self.live.items() if not held.expired()}
        self.peak = max(self.peak, sum(size for _, size in self.live.values()))
        return out


class Sent(TorchDispatchMode):
    """The bytes that a rank sends by its collectives, each a ring, and the most that one of them gives it."""

    def __init__(self, ranks: int) -> None:
        super().__init__()
        self.bytes, self.others, self.ranks = 0.0, ranks - 1, ranks
        self.largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name, space = func.overloadpacket.__name__, func.namespace
        if space in ("c10d", "_c10d_functional") and name != "wait_tensor":
            size = args[0].nbytes
            self.bytes += {
                "all_gather_into_tensor": self.others * size,
                "reduce_scatter_tensor": self.others * size / self.ranks,
                "all_reduce": 2 * self.others * size / self.ranks,
            }[name]
            self.largest = max(self.largest, *(leaf.nbytes for leaf in tree_leaves(out) if isinstance(leaf, Tensor)))
        return out


def bank_steps(mesh: DeviceMesh, rows: int, features: int, batch: int) -> dict[str, float]:
    """Make a bank and take two steps; return the peak in rows of the bank, and the bytes the second sends and gets."""
    with Held() as held:
        bank = LinearAverage(features, rows, mesh=mesh)
        for _ in range(2):
            x = normalize(torch.randn(batch, features)).requires_grad_()
            y = torch.randint(rows, (batch,))
            with Sent(mesh.size()) as sent:
                bank.loss(x, y).backward()
                bank.update(x, y)
    return {"peak rows": held.peak / features / 4, "sent": sent.bytes, "gathered": sent.largest}


def sent_with_a_weight(mesh: DeviceMesh, rows: int, features: int, batch: int) -> float:
    """Return the bytes that a call sends whose weight gets a gradient."""
    weight = distribute_tensor(torch.randn(rows, features), mesh, [Shard(0)]).requires_grad_()
    x = torch.randn(batch, features, requires_grad=True)
    with Sent(mesh.size()) as sent:
        linear_cross_entropy(x, weight, torch.randint(rows, (batch,))).backward()
    return sent.bytes


def largest_shape(mesh: DeviceMesh, rows: int, batch: int) -> int:
    """Return the numbers of the largest tensor that a step with a weight makes."""
    largest = 0

    class Shapes(TorchDispatchMode):
        def __torch_dispatch__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
            nonlocal largest
            out = func(*args, **(kwargs or {}))
            largest = max(largest, *(leaf.numel() for leaf in tree_leaves(out) if isinstance(leaf, Tensor)), 0)
            return out

    shard = torch.randn(rows // mesh.size(), 2, requires_grad=True)
    x = torch.randn(batch, 2, requires_grad=True)
    with Shapes():
        linear_cross_entropy(x, shard, torch.randint(rows, (batch,)), mesh=mesh).backward()
    return largest
