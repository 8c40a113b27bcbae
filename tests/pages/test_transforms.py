"""The table of the page on transforms is what torch does to the classes of that page, cell by cell."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from pages.blocks import DOCS, all_blocks

PAGE = "how-to/survive-every-transform.md"
#: Identity forward, factor 3, and this cotangent: the declared gradient is 3 * W, the plain derivative W.
W = torch.tensor([1.0, 2.0, 3.0])
X = torch.tensor([1.0, -2.0, 0.5])
VERDICTS = {(3.0, 6.0, 9.0): "right", (1.0, 2.0, 3.0): "dropped"}

Loss = Callable[[Tensor], Tensor]


def compiled(function: Any, **options: Any) -> Any:
    return torch.compile(function, fullgraph=True, backend="aot_eager", **options)


def backward(function: Loss, x: Tensor = X) -> Tensor:
    x = x.clone().requires_grad_()
    function(x).backward()
    assert x.grad is not None
    return x.grad


def jvp(wrap: Callable[[Any], Any]) -> Callable[[Loss], Tensor]:
    def each(loss: Loss) -> Tensor:
        function = wrap(lambda x, x_dot: torch.func.jvp(loss, (x,), (x_dot,))[1])
        return torch.stack([function(X, direction) for direction in torch.eye(3)])

    return each


def two_shapes(loss: Loss) -> Tensor:
    function = compiled(lambda x: loss(x[-3:]), dynamic=True)
    backward(function, torch.ones(5))
    return backward(function, torch.cat([torch.zeros(1), X]))[1:]


def exported(*, strict: bool) -> Callable[[Loss], Tensor]:
    def each(loss: Loss) -> Tensor:
        class Module(torch.nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                return loss(x)

        return backward(torch.export.export(Module(), (X,), strict=strict).module())

    return each


def vmapped(loss: Loss) -> Any:
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


def table() -> tuple[list[str], dict[str, list[str]]]:
    """Return the names of the classes, and the cells of the page by transform."""
    lines = (DOCS / PAGE).read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines if line.startswith("|")]
    head, _, *body = rows
    return [name.strip("`") for name in head[1:]], {row[0]: row[1:] for row in body}


@pytest.fixture(scope="module")
def classes() -> dict[str, Any]:
    """Return what the Python of the page defines."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec("\n".join(block.text for block in all_blocks() if block.page == PAGE and block.kind == "python"), names)
    return names


def outcome(transform: Callable[[Loss], Tensor], function: Any) -> str:
    """Return the word of the table for a transform of a function."""
    torch._dynamo.reset()

    def loss(x: Tensor) -> Tensor:
        return (function.apply(x, 3.0) * W).sum()

    try:
        gradient = transform(loss)
    except (NotImplementedError, torch._dynamo.exc.Unsupported):
        return "raises"
    return VERDICTS.get(tuple(gradient.detach().tolist()), f"wrong: {gradient}")


def test_the_table_has_a_row_for_each_transform() -> None:
    assert list(table()[1]) == list(TRANSFORMS)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_row_of_the_table_is_what_torch_does(name: str, classes: dict[str, Any]) -> None:
    columns, rows = table()
    assert [outcome(TRANSFORMS[name], classes[column]) for column in columns] == rows[name]


def test_a_vmap_or_a_gradient_of_a_compiled_function_is_refused_for_every_function() -> None:
    torch._dynamo.reset()
    for transform in (torch.vmap, torch.func.grad):
        with pytest.raises(RuntimeError, match=r"functorch|torch\.compile|torch\.func"):
            transform(compiled(lambda x: (x * x).sum()))(X)
