"""Wrong calls over a mesh, each by its name; those of one rank are an error on every rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.func import grad

from gradspec.functions import LinearCrossEntropy, linear_cross_entropy


def call(ranks: DeviceMesh, **changed: Any) -> torch.Tensor:
    """Make a right call, but for what is changed."""
    weight = distribute_tensor(torch.randn(5, 3), ranks, [Shard(0)]).requires_grad_()
    x = torch.randn(2, 3, requires_grad=True)
    return linear_cross_entropy(**{"x": x, "weight": weight, "target": torch.tensor([0, 4])} | changed)


def _last(mesh: DeviceMesh, value: Any, otherwise: Any) -> Any:
    return value if mesh.get_local_rank() == mesh.size() - 1 else otherwise


def _compiled(mesh: DeviceMesh) -> None:
    x, target = torch.randn(2, 3), torch.tensor([0, 4])
    weight = distribute_tensor(torch.randn(5, 3), mesh, [Shard(0)])
    torch.compile(linear_cross_entropy, backend="eager", fullgraph=True)(x, weight, target)


def _twice(mesh: DeviceMesh) -> None:
    x = torch.randn(2, 3, requires_grad=True)
    (first,) = torch.autograd.grad(call(mesh, x=x), x, create_graph=True)
    first.sum().backward()


def _forward_mode(mesh: DeviceMesh) -> None:
    with torch.autograd.forward_ad.dual_level():
        x = torch.autograd.forward_ad.make_dual(torch.randn(2, 3), torch.randn(2, 3))
        call(mesh, x=x)


def _two_dimensions(mesh: DeviceMesh) -> None:
    call(mesh, weight=torch.randn(5, 3), mesh=init_device_mesh("cpu", (2, mesh.size() // 2)))


def _other_mesh(mesh: DeviceMesh) -> None:
    call(mesh, mesh=init_device_mesh("cpu", (mesh.size(),), mesh_dim_names=("other",)))


def _transformed(mesh: DeviceMesh) -> None:
    weight = distribute_tensor(torch.randn(5, 3), mesh, [Shard(0)])
    grad(lambda x: linear_cross_entropy(x, weight, torch.tensor([0, 4])))(torch.randn(2, 3))


def _no_gradient_here(mesh: DeviceMesh) -> None:
    weight = distribute_tensor(torch.randn(5, 3), mesh, [Shard(0)])
    call(mesh, weight=weight.requires_grad_(_last(mesh, True, False)))


WRONG: dict[str, Callable[[DeviceMesh], object]] = {
    "mesh of two dimensions": _two_dimensions,
    "replicated": lambda mesh: call(mesh, weight=distribute_tensor(torch.randn(5, 3), mesh, [Replicate()])),
    "sharded by columns": lambda mesh: call(mesh, weight=distribute_tensor(torch.randn(5, 4), mesh, [Shard(1)])),
    "another mesh": _other_mesh,
    "DTensor as x": lambda mesh: call(mesh, x=distribute_tensor(torch.randn(4, 3), mesh, [Shard(0)])),
    "bias that is not sharded": lambda mesh: call(mesh, bias=torch.randn(5)),
    "class that no rank has": lambda mesh: call(mesh, target=torch.tensor([0, _last(mesh, 5, 4)])),
    "wrong dtype on one rank": lambda mesh: call(mesh, x=torch.randn(2, 3, dtype=_last(mesh, torch.float64, None))),
    "another temperature on one rank": lambda mesh: call(mesh, temperature=_last(mesh, 0.5, 1.0)),
    "margin on one rank only": lambda mesh: call(mesh, margin=_last(mesh, 0.5, None)),
    "weight without a gradient on some ranks": _no_gradient_here,
    "no row on any rank": lambda mesh: call(mesh, weight=torch.randn(0, 3), mesh=mesh),
    "compiled as one graph": _compiled,
    "torch.func": _transformed,
    "forward mode": _forward_mode,
    "differentiated twice": _twice,
    "Function of one process": lambda mesh: LinearCrossEntropy.apply(
        torch.randn(2, 3), distribute_tensor(torch.randn(5, 3), mesh, [Shard(0)]), torch.tensor([0, 4])
    ),
}


def error_of(mesh: DeviceMesh, name: str) -> str:
    """Return the class and the words of the error that this rank gets."""
    try:
        WRONG[name](mesh)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"
