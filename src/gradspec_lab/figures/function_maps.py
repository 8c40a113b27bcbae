"""Maps of a function's gradient over two of its inputs, where a curve shows less, from real calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from gradspec.functions import InstanceDiscriminationLoss
from gradspec.functions import mix_branches as mix
from gradspec_lab.figures.function_curves import digits, grid

#: Points along each axis.
POINTS = 21
TEMPERATURE = 0.2
ROWS = 8


def heat(title: str, x: Mapping[str, Any], y: Mapping[str, Any], value: Mapping[str, Any], rows: Tensor) -> Any:
    """Return a map in the form that `gradspec-map` reads."""
    kept = [[digits(number) for number in row] for row in rows.tolist()]
    axes = {"x": dict(x), "y": dict(y), "value": dict(value)}
    return {"title": title, **axes, "rows": kept}


def over(columns: Sequence[float], rows: Sequence[float]) -> tuple[Tensor, Tensor]:
    """Return the horizontal and the vertical coordinate of each point, row by row."""
    y, x = torch.meshgrid(torch.tensor(rows).double(), torch.tensor(columns).double(), indexing="ij")
    return x.flatten(), y.flatten()


def gradients(call: Callable[..., Tensor], *inputs: Tensor) -> tuple[Tensor, ...]:
    """Return what flows back to each input for a cotangent of 1."""
    leaves = [value.detach().requires_grad_() for value in inputs]
    return torch.autograd.grad(call(*leaves).sum(), leaves)


def shaking() -> dict[str, Any]:
    """Return the angle between the gradient that flows back and the derivative of forward, over both shares."""
    shares = [digits(share) for share in grid(0, 1, POINTS)]
    alpha, beta = over(shares, shares)
    branches = torch.full_like(alpha, 2.0), torch.full_like(alpha, -1.0)
    back = torch.stack(gradients(lambda x1, x2: mix(x1, x2, alpha, beta), *branches))
    # Forward is linear in the branches: what one more of a branch adds to the output is the derivative by it.
    one = torch.ones_like(alpha)
    y = mix(*branches, alpha, beta)
    forward = (
        torch.stack(
            (mix(branches[0] + one, branches[1], alpha, beta), mix(branches[0], branches[1] + one, alpha, beta))
        )
        - y
    )
    # The cross product is exact where the two are parallel; of the arc cosine of 1, half of the digits would be left.
    cross = (back[0] * forward[1] - back[1] * forward[0]).abs()
    angle = torch.atan2(cross, (back * forward).sum(0)).rad2deg().reshape(POINTS, POINTS)
    axes = [{"label": label, "values": shares} for label in ("alpha", "beta")]
    value = {"label": "degrees between the gradient and the derivative of forward", "format": ".0f"}
    return {"angle": heat("How far the gradient is from the derivative of forward", *axes, value, angle)}


def discrimination() -> dict[str, Any]:
    """Return how strongly an embedding is pushed away from another row, over the products with its own and that one."""
    products = [digits(product) for product in grid(-1, 1, POINTS)]
    memory = torch.eye(ROWS, dtype=torch.float64)
    y = torch.zeros(POINTS * POINTS, dtype=torch.int64)

    def loss(own: Tensor, other: Tensor) -> Tensor:
        x = own[:, None] * memory[0] + other[:, None] * memory[1]
        return InstanceDiscriminationLoss.apply(x, y, memory, TEMPERATURE)

    _, push = gradients(loss, *over(products, products))
    x = {"label": "product of the embedding with its own row", "values": products}
    vertical = {"label": "product with another row", "values": products}
    value = {"label": "derivative of the loss by the product with the other row", "format": ".2f"}
    return {"push": heat("The push away from another row", x, vertical, value, push.reshape(POINTS, POINTS))}


#: The maps of each function that has some, by the name of its spec.
MAPS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "shake_shake": shaking,
    "instance_discrimination_loss": discrimination,
}
