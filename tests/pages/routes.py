"""Measures one route of the page which-route.md, in a process of its own: `routes.py WHAT ROUTE FOLDER ANSWER`.

A process of its own, since an operator stays registered until the process ends, and since Triton's interpreter is
chosen when a kernel is defined. The modules of the page are in the folder; the answer is a JSON file.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

FACTOR = 3.0
#: Forward gives 1, 0, 1 here, so that no two of the outcomes are the same.
X = torch.tensor([1.0, -2.0, 0.5])
W = torch.tensor([1.0, 2.0, 3.0])
#: The module of each route, and what its file calls the function.
ROUTES = {
    "Function": ("by_function", "Step"),
    "custom_op": ("by_custom_op", "step_custom_op"),
    "triton_op": ("by_triton_op", "step_triton_op"),
    "C++": ("by_cpp", "step_cpp"),
    "both": ("by_both", "StepBoth"),
}

Loss = Callable[[Tensor], Tensor]


def function_of(route: str) -> Callable[..., Tensor]:
    """Return the function of a route."""
    module, name = ROUTES[route]
    found = getattr(importlib.import_module(module), name)
    return getattr(found, "apply", found)


def word(got: Tensor, right: Tensor) -> str:
    """Return what the table says of a gradient or tangent."""
    if torch.allclose(got, right):
        return "right"
    return "dropped" if not got.any() else f"wrong: {got.tolist()}"


def compiled(function: Any) -> Any:
    return torch.compile(function, fullgraph=True, backend="aot_eager")


class Program(torch.nn.Module):
    """The route as a module, which is what is exported."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, FACTOR)


def exported(function: Callable[..., Tensor]) -> Any:
    return torch.export.export(Program(function), (X,))


def gradient(program: Callable[[Tensor], Tensor]) -> str:
    """Return the word for the gradient of a program: forward must have kept its value."""
    assert torch.equal(program(X), torch.tensor([1.0, 0.0, 1.0]))
    leaf = X.clone().requires_grad_()
    loss = (program(leaf) * W).sum()
    if not loss.requires_grad:
        return "dropped"
    loss.backward()
    return "dropped" if leaf.grad is None else word(leaf.grad, FACTOR * W)


def twice(function: Callable[..., Tensor]) -> str:
    """With the loss w y^2 / 2, the gradient is w f y and the second derivative w f^2."""
    x = X.clone().requires_grad_()
    loss = (W * function(x, FACTOR) ** 2 / 2).sum()
    (first,) = torch.autograd.grad(loss, x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    return word(second, FACTOR**2 * W)


def mapped(function: Callable[..., Tensor]) -> str:
    # A row each in a column: the batch is dimension 1.
    rows = torch.stack([X, -X], 1).requires_grad_()
    y = torch.vmap(function, in_dims=(1, None), out_dims=1)(rows, FACTOR)
    assert torch.equal(y, (rows >= 0).float())
    along = W.unsqueeze(1).expand(3, 2)
    (found,) = torch.autograd.grad(y, rows, along)
    return word(found, FACTOR * along)


def of_loss(wrap: Callable[[Loss], Tensor]) -> Callable[[Callable[..., Tensor]], str]:
    return lambda function: word(wrap(lambda x: (function(x, FACTOR) * W).sum()), FACTOR * W)


TRANSFORMS: dict[str, Callable[[Callable[..., Tensor]], str]] = {
    "`backward()`": lambda function: gradient(lambda x: function(x, FACTOR)),
    "a second derivative": twice,
    "`func.grad`": of_loss(lambda loss: torch.func.grad(loss)(X)),
    "`vmap`, then `backward()`": mapped,
    "`func.jvp`": lambda function: word(torch.func.jvp(lambda x: function(x, FACTOR), (X,), (W,))[1], FACTOR * W),
    "`compile`, then `backward()`": lambda function: gradient(compiled(lambda x: function(x, FACTOR))),
    "`compile(func.grad)`": of_loss(lambda loss: compiled(torch.func.grad(loss))(X)),
    "`export`, then `backward()`": lambda function: gradient(exported(function).module()),
}
#: The row that another process measures, with `load`.
LOADED = "`export`, load in a new process, then `backward()`"


def cells(route: str) -> dict[str, dict[str, str]]:
    """Return the word of each row, and what was raised."""
    found = {}
    for name, transform in TRANSFORMS.items():
        torch._dynamo.reset()
        try:
            found[name] = {"word": transform(function_of(route))}
        except (RuntimeError, NotImplementedError) as error:
            found[name] = {"word": "raises", "said": str(error)}
    return found


def spec_of(route: str) -> Any:
    """Return the spec of a route, which for a Function is that of the operator."""
    module, _ = ROUTES[route]
    if route in ("Function", "both"):
        return importlib.import_module("by_custom_op_spec").STEP.for_(function_of(route), name=module)
    return importlib.import_module(f"{module}_spec").STEP


def under_seeds(route: str, count: int) -> dict[str, Any]:
    """Hold a route to all laws under many seeds."""
    from gradspec_lab.selftest._seeds import sweep

    return sweep(count, specs=[spec_of(route)])


def verdicts(route: str) -> list[list[str]]:
    """Hold a route to all laws; return law, status, rank and message of what does not hold."""
    from gradspec import verify

    report = verify([spec_of(route)])
    return [
        [v.law, str(v.status), v.finding.rank, v.finding.message]
        for v in report.verdicts
        if v.status not in ("holds", "not_applicable")
    ]


def cuda(route: str) -> list[bool]:
    """Return whether the dispatcher has a kernel for CUDA, before and after one is registered."""
    from gradspec.spec._dispatch import kernels

    module, name = ROUTES[route]
    operator = getattr(importlib.import_module(module), name)
    overload = getattr(operator, "_opoverload", operator)
    before = "CUDA" in kernels(overload)
    if route == "custom_op":
        operator.register_kernel("cuda")(lambda x, factor: (x >= 0).to(x.dtype))
    else:
        library = torch.library.Library("routes", "IMPL")
        library.impl(name, lambda x, factor: (x >= 0).to(x.dtype), "CUDA")
    return [before, "CUDA" in kernels(overload)]


def main(what: str, route: str, folder: Path) -> Any:
    torch.set_num_threads(1)
    sys.path.insert(0, str(folder))
    program = folder / f"{ROUTES[route][0]}.pt2"
    match what:
        case "cells":
            return cells(route)
        case "laws":
            return verdicts(route)
        case "seeds":
            return under_seeds(route, int(os.environ["GRADSPEC_ROUTES"]))
        case "export":
            torch.export.save(exported(function_of(route)), program)
            return None
        case "load":
            importlib.import_module(ROUTES[route][0])
            return gradient(torch.export.load(program).module())
        case "cuda":
            return cuda(route)


if __name__ == "__main__":
    found = main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
    Path(sys.argv[4]).write_text(json.dumps(found), encoding="utf-8")
