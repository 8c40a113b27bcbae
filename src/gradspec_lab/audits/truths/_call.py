"""One call of a published function, made anew for each question: fresh tensors, and noise from the same seed."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

SEED = 7


class Call:
    """A published Function and the arguments of one call."""

    def __init__(self, cls: type, args: Sequence[Any]) -> None:
        self.cls: Any = cls
        self.args = tuple(args)
        #: The places of the floating tensors: each is asked for its gradient.
        self.wrt = [k for k, a in enumerate(args) if isinstance(a, Tensor) and a.is_floating_point()]
        takes = [name for name in inspect.signature(cls.forward).parameters if name not in ("ctx", "cls")]
        #: What forward calls its arguments.
        self.names = [takes[k] if k < len(takes) else f"argument {k}" for k in range(len(args))]

    def leaves(self, change: Callable[[Tensor], Tensor] = lambda t: t) -> list[Any]:
        """Return the arguments, the floating ones as leaves; `change` gives them another dtype or shape."""
        return [change(a.clone()).detach().requires_grad_() if k in self.wrt else a for k, a in enumerate(self.args)]

    def run(self, args: Sequence[Any], arrange: Callable[[Tensor], Tensor] = lambda t: t) -> list[Tensor]:
        """Return the outputs that are tensors.

        The function gets copies: one that writes into its argument may, as it may with an activation.
        """
        torch.manual_seed(SEED)
        given = [arrange(a.clone()) if isinstance(a, Tensor) else a for a in args]
        return tensors(self.cls.apply(*given))

    def cotangents(self, seed: int = 1, args: Sequence[Any] | None = None) -> list[Tensor]:
        """Return a random cotangent for each output that has a gradient."""
        return [noise(y, seed + k) for k, y in enumerate(flowing(self.run(self.leaves() if args is None else args)))]

    def gradients(
        self,
        v: Sequence[Tensor] | None = None,
        *,
        args: Sequence[Any] | None = None,
        arrange: Callable[[Tensor], Tensor] = lambda t: t,
    ) -> list[Tensor | None]:
        """Return what a backward pass gives for each floating argument."""
        args = self.leaves() if args is None else args
        y = flowing(self.run(args, arrange))
        if not y:
            return [None for _ in self.wrt]
        v = [noise(t, 1 + k) for k, t in enumerate(y)] if v is None else [t.clone() for t in v]  # it may be written to
        wanted = [args[k] for k in self.wrt if args[k].requires_grad]
        found = iter(torch.autograd.grad(y, wanted, v, allow_unused=True))
        return [next(found) if args[k].requires_grad else None for k in self.wrt]


def load(target: str, site: Path) -> Any:
    """Return what a target names: in a module, or in a file that pip put into a folder."""
    where, _, name = target.rpartition(":")
    if not where.endswith(".py"):
        return getattr(importlib.import_module(where), name)
    spec = importlib.util.spec_from_file_location(f"published_{Path(where).stem}", site / where)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return getattr(module, name)


def arguments(case: str) -> tuple[Any, ...]:
    """Return the arguments that a case of the table writes down: floating tensors in float64, each with its seed."""
    drawn = 0

    def random(draw: Callable[..., Tensor], shape: Sequence[int]) -> Tensor:
        nonlocal drawn
        drawn += 1
        return draw(*shape, generator=torch.Generator().manual_seed(drawn), dtype=torch.float64)

    def tensor(data: Any) -> Tensor:
        found = torch.tensor(data)
        return torch.tensor(data, dtype=torch.float64) if found.is_floating_point() else found

    recipes = {
        "randn": lambda *shape: random(torch.randn, shape),
        "rand": lambda *shape: random(torch.rand, shape),
        "zeros": lambda *shape: torch.zeros(*shape, dtype=torch.float64),
        "full": lambda shape, value: torch.full(shape, value, dtype=torch.float64),
        "tensor": tensor,
    }
    return tuple(eval(f"tuple([*{case}])", {"__builtins__": {"tuple": tuple}}, recipes))  # our own table's text


def noise(like: Tensor, seed: int) -> Tensor:
    """Return normal noise in the shape and dtype of a tensor."""
    return torch.randn(like.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(like.dtype)


def tensors(value: Any) -> list[Tensor]:
    """Return the tensors of what a function returned."""
    if isinstance(value, Tensor):
        return [value]
    return [t for v in value for t in tensors(v)] if isinstance(value, (list, tuple)) else []


def flowing(outputs: Sequence[Tensor]) -> list[Tensor]:
    """Return the outputs through which a gradient flows."""
    return [y for y in outputs if y.requires_grad]


def distance(a: Tensor | None, b: Tensor) -> float:
    """Return the largest difference of two tensors relative to the second; None is zero, another shape is infinite."""
    if a is None:
        return 0.0 if not b.numel() or not b.abs().max() else float("inf")
    if a.shape != b.shape:
        return float("inf")
    a, b = a.detach().double(), b.detach().double()
    if not a.numel():
        return 0.0
    if not torch.equal(a.isfinite(), b.isfinite()):
        return float("inf")
    a, b = a.nan_to_num(0, 0, 0), b.nan_to_num(0, 0, 0)
    return float((a - b).abs().max() / max(1e-3, float(b.abs().max())))


def compared(a: Sequence[Tensor | None], b: Sequence[Tensor | None], limit: float = 1e-6) -> str:
    """Return "same", or how far two lists of tensors lie apart, where the second has a tensor."""
    if len(a) != len(b):
        return f"differs: {len(a)} tensors, not {len(b)}"
    worst = apart(a, b)
    if worst <= limit:
        return "same"
    lost = any(x is None and y is not None for x, y in zip(a, b, strict=True))
    return "differs: a gradient is None" if lost else f"differs by {worst:.2g}"


def apart(a: Sequence[Tensor | None], b: Sequence[Tensor | None]) -> float:
    """Return the largest relative difference of two lists of tensors; where the second has None, there is none."""
    return max((distance(x, y) for x, y in zip(a, b, strict=True) if y is not None), default=0.0)


def said(error: BaseException) -> str:
    """Return an error in one line, without what differs from one machine to the next."""
    return f"raises {type(error).__name__}: {' '.join(str(error).split())[:160]}".split(" /")[0]
