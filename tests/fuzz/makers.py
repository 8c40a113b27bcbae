"""One maker for each function: which calls there are, within what the arguments of its spec say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from fuzz.tensors import COMPLEX, DTYPES, LAYOUTS, Drawn

#: Sizes above which the losses read the bank, or the weight, by flash attention.
LARGE = (513, 520, 540)


@dataclass(frozen=True)
class Call:
    """The arguments of a call by name: plain values, and tensors as `Drawn`."""

    values: Mapping[str, Any]
    #: How many numbers the function returns.
    outputs: int


class Draw:
    """What the makers draw with."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self._draw = draw

    def one(self, *choices: Any) -> Any:
        return self._draw(st.sampled_from(choices))

    def number(self, low: int, high: int) -> int:
        return int(self._draw(st.integers(low, high)))

    def tensor(
        self, shape: tuple[int, ...], dtype: str, low: float = -1.0, high: float = 1.0, *, expanded: bool = True
    ) -> Drawn:
        layouts = [layout for layout in LAYOUTS if expanded or layout != "expanded"]
        return Drawn(shape, dtype, self.one(*layouts), self.number(0, 999), low, high)

    def shape(self, least: int = 0) -> tuple[int, ...]:
        """Return a shape of at most 24 elements, an empty one now and then."""
        sizes = [self.number(1, 4) for _ in range(self.number(least, 4))]
        while len(sizes) > 1 and count(sizes) > 24:
            sizes.pop()
        return tuple(0 if self.number(0, 40) == 40 else size for size in sizes)

    def broadcast(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return a shape that broadcasts to another one."""
        kept = shape[self.number(0, len(shape)) :]
        return tuple(self.one(size, 1) for size in kept)


def count(shape: Any) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def scaling(factor: str) -> Callable[[Draw], Call]:
    """Return the maker of a gradient that is scaled: any shape, complex ones too, and a factor of every kind."""

    def make(draw: Draw) -> Call:
        shape, dtype = draw.shape(), draw.one(*DTYPES, *COMPLEX)
        form = draw.one("float", "int", "0-d", "tensor")
        if form in ("float", "int"):
            by: Any = draw.one(0.1, -2.0, 0.0, 1.5) if form == "float" else draw.one(-1, 0, 3)
        else:
            kind = draw.one("float32", "float64", "int64", dtype if dtype in DTYPES else "float32")
            by = draw.tensor(() if form == "0-d" else draw.broadcast(shape), kind, -2, 3)
        return Call({"x": draw.tensor(shape, dtype), factor: by}, count(shape))

    return make


def shake_shake(draw: Draw) -> Call:
    """Two branches of one shape, and weights from 0 to 1 that broadcast to them."""
    shape, dtype = draw.shape(), draw.one(*DTYPES)

    def weight() -> Any:
        form = draw.one("float", "0-d", "tensor")
        if form == "float":
            return draw.one(0.0, 0.25, 0.5, 1.0)
        return draw.tensor(() if form == "0-d" else draw.broadcast(shape), dtype, 0, 1)

    branches = {"x1": draw.tensor(shape, dtype), "x2": draw.tensor(shape, dtype)}
    return Call({**branches, "alpha": weight(), "beta": weight()}, count(shape))


def linear_average_op(draw: Draw) -> Call:
    """Embeddings and a bank, several of them of one row, and both parameters in single or double precision."""
    batch, rows, features = draw.number(0, 4), draw.number(1, 6), draw.number(1, 4)
    dtype = draw.one(*DTYPES)
    values = {
        "x": draw.tensor((batch, features), dtype),
        "y": draw.tensor((batch,), "int64", 0, rows),
        # It is written to, so that no two of its numbers may lie in one place.
        "memory": draw.tensor((rows, features), dtype, expanded=False),
        "params": draw.tensor((2,), draw.one("float32", "float64"), 0.25, 1),
    }
    return Call(values, batch * rows)


def temperature(draw: Draw, dtype: str) -> Any:
    return draw.one(0.5, 1.0, 2.0, draw.tensor((), draw.one(dtype, "float32"), 0.5, 2))


def instance_discrimination_loss(draw: Draw) -> Call:
    """A small bank, or one that flash attention reads."""
    batch, features, dtype = draw.number(0, 3), draw.number(1, 4), draw.one(*DTYPES)
    rows = draw.one(*range(1, 7), draw.one(*LARGE))
    values = {
        "x": draw.tensor((batch, features), dtype),
        "y": draw.tensor((batch,), "int64", 0, rows),
        "memory": draw.tensor((rows, features), dtype),
        "temperature": temperature(draw, dtype),
    }
    return Call(values, batch)


def linear_cross_entropy(draw: Draw) -> Call:
    """Every option, each of them left out too; a class that is ignored is one of the targets now and then."""
    batch, features, dtype = draw.number(0, 3), draw.number(1, 4), draw.one(*DTYPES)
    rows = draw.one(*range(1, 7), draw.one(*LARGE))
    values = {
        "x": draw.tensor((batch, features), dtype),
        "weight": draw.tensor((rows, features), dtype),
        "target": draw.tensor((batch,), "int64", 0, rows),
        "bias": draw.one(None, draw.tensor((rows,), dtype)),
        "margin": draw.one(None, 0.25, draw.tensor((batch,), dtype)),
        "temperature": temperature(draw, dtype),
        "ignore_index": draw.one(-100, 0),
        "label_smoothing": draw.one(0.0, 0.1, 1.0),
    }
    return Call(values, batch)


#: By the name of the spec.
MAKERS: Mapping[str, Callable[[Draw], Call]] = {
    "grad_factor": scaling("f"),
    "grad_multiply": scaling("scale"),
    "shake_shake": shake_shake,
    "linear_average_op": linear_average_op,
    "instance_discrimination_loss": instance_discrimination_loss,
    "linear_cross_entropy": linear_cross_entropy,
}
