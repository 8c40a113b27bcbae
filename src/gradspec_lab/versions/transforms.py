"""Measure a custom gradient under each transform of torch: right, dropped, or an error.

The Functions are those of a page of the documentation, `survive-every-transform.md`, built up step by step.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "survive-every-transform.md"
#: Identity forward, factor 3, and this cotangent: the declared gradient is 3 * W, the plain derivative W.
W = torch.tensor([1.0, 2.0, 3.0])
X = torch.tensor([1.0, -2.0, 0.5])
VERDICTS = {(3.0, 6.0, 9.0): "right", (1.0, 2.0, 3.0): "dropped"}

Loss = Callable[[Tensor], Tensor]


def compiled(function: Any, **options: Any) -> Any:
    """Compile a function as a whole, without a code generator."""
    return torch.compile(function, fullgraph=True, backend="aot_eager", **options)


def backward(function: Loss, x: Tensor = X) -> Tensor:
    """Return the gradient of a loss, by a backward pass."""
    x = x.clone().requires_grad_()
    function(x).backward()
    assert x.grad is not None
    return x.grad


def jvp(wrap: Callable[[Any], Any]) -> Callable[[Loss], Tensor]:
    """Return the transform that differentiates forward along each coordinate."""

    def each(loss: Loss) -> Tensor:
        function = wrap(lambda x, x_dot: torch.func.jvp(loss, (x,), (x_dot,))[1])
        return torch.stack([function(X, direction) for direction in torch.eye(3)])

    return each


def two_shapes(loss: Loss) -> Tensor:
    """Return the gradient by the second call of one compilation, of another size."""
    function = compiled(lambda x: loss(x[-3:]), dynamic=True)
    backward(function, torch.ones(5))
    return backward(function, torch.cat([torch.zeros(1), X]))[1:]


def exported(*, strict: bool) -> Callable[[Loss], Tensor]:
    """Return the transform that exports the loss and differentiates the program."""

    def each(loss: Loss) -> Tensor:
        class Module(torch.nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                return loss(x)

        return backward(torch.export.export(Module(), (X,), strict=strict).module())

    return each


def vmapped(loss: Loss) -> Any:
    """Return the gradient of a loss, mapped over a batch."""
    return torch.vmap(torch.func.grad(loss))


TRANSFORMS: dict[str, Callable[[Loss], Tensor]] = {
    "`backward()`": backward,
    "`func.grad`": lambda loss: torch.func.grad(loss)(X),
    "`vmap(func.grad)`": lambda loss: vmapped(loss)(X.expand(2, 3))[1],
    "`func.jvp`": jvp(lambda function: function),
    "`func.jacfwd`": lambda loss: torch.func.jacfwd(loss)(X),
    "`compile`, then `backward()`": lambda loss: backward(compiled(loss)),
    "`compile(dynamic=True)`, two shapes": two_shapes,
    "`compile(func.grad)`": lambda loss: compiled(torch.func.grad(loss))(X),
    "`compile(vmap(func.grad))`": lambda loss: compiled(vmapped(loss))(X.expand(2, 3))[1],
    "`compile(func.jvp)`": jvp(compiled),
    "`export(strict=True)`, then `backward()`": exported(strict=True),
    "`export(strict=False)`, then `backward()`": exported(strict=False),
    "`checkpoint`, then `backward()`": lambda loss: backward(lambda x: checkpoint(loss, x, use_reentrant=False)),
}


def outcome(transform: Callable[[Loss], Tensor], function: Any) -> str:
    """Return the word of the table for a transform of a function."""
    torch._dynamo.reset()

    def loss(x: Tensor) -> Tensor:
        return (function.apply(x, 3.0) * W).sum()

    try:
        gradient = transform(loss)
    except (NotImplementedError, torch._dynamo.exc.TorchDynamoException):
        return "raises"
    return VERDICTS.get(tuple(gradient.detach().tolist()), f"wrong: {gradient}")


def classes_of_the_page() -> dict[str, Any]:
    """Return what the Python of the page defines before its table."""
    names: dict[str, Any] = {"__name__": "__main__"}
    text, table, _ = PAGE.read_text(encoding="utf-8").partition("\n## What each step gains\n")
    assert table, f"{PAGE.name} has no table of what each step gains"
    exec("\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)), names)
    return names


def measured() -> dict[str, dict[str, str]]:
    """Return the word for each transform and class of the page."""
    names = classes_of_the_page()
    steps = [name for name, value in names.items() if isinstance(value, type) and hasattr(value, "apply")]
    steps.remove("Function")
    return {
        transform: {step: outcome(function, names[step]) for step in steps}
        for transform, function in TRANSFORMS.items()
    }
