"""The shared contract of GradFactor and GradMultiply: cases, wrong calls, arguments and sources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from gradspec.functions import _papers as papers
from gradspec.spec import Argument, Case, Effects, Make, Misuse, Placements


def cases(make: Make) -> Iterator[Case]:
    """Yield the representative calls."""
    yield Case(name="factor 0.1", args=(make(3, 4), 0.1))
    yield Case(name="factor -2", args=(make(2, 3), -2.0))
    yield Case(name="factor 0", args=(make(2, 2), 0.0))
    yield Case(name="integer factor", args=(make(3), 2))
    yield Case(name="0-d tensor factor", args=(make(2, 3), make().abs()))
    yield Case(name="tensor factor a row", args=(make(2, 3), make(2, 1)))
    yield Case(name="float32 factor of a float64 input", args=(make(2, 3), make(3, dtype=torch.float32)))
    yield Case(name="integer tensor factor", args=(make(2, 3), make(3, dtype=torch.int64)))
    yield Case(name="transposed input", args=(make(4, 3).T, 0.5))
    yield Case(name="expanded input", args=(make(3, 1).expand(3, 4), 0.5))
    yield Case(name="channels-last input", args=(make(2, 3, 4, 5).to(memory_format=torch.channels_last), 0.5))
    yield Case(name="float32 input", args=(make(2, 3, dtype=torch.float32), 0.5))
    yield Case(name="complex input", args=(make(2, 3, dtype=torch.complex128), 0.5))
    yield Case(name="0-d input", args=(make(), 0.5))
    yield Case(name="empty input", args=(make(0, 3), 0.5))
    yield Case(name="integer input", args=(make(3, dtype=torch.int64), 0.5))
    yield Case(name="boolean input", args=(make(3, dtype=torch.bool), 0.5))


def misuses(make: Make) -> Iterator[Misuse]:
    """Yield the wrong calls, and the error that each gets."""

    def wrong(name: str, *args: Any, error: type[Exception] = ValueError, match: str) -> Misuse:
        return Misuse(case=Case(name=name, args=args), error=error, match=match)

    x = make(3)
    yield wrong("arguments in a tuple", (x, 0.5), error=TypeError, match="does not look into a tuple.* Write ")
    yield wrong("factor missing", x, error=TypeError, match="is missing")
    yield wrong("input is no tensor", [1.0, 2.0], error=TypeError, match="list")
    yield wrong("input is a number", 1.0, 0.5, error=TypeError, match="x is a float, expected a tensor")
    yield wrong("factor requires grad", x, make().requires_grad_(), match="requires grad")
    yield wrong("factor does not broadcast", x, make(4), match="does not broadcast")
    yield wrong("factor wider than the input", x, make(2, 3), match="does not broadcast")
    yield wrong("complex factor", x, 2j, error=TypeError, match="complex")
    yield wrong("complex tensor factor", x, make(dtype=torch.complex128), error=TypeError, match="expected a real one")
    yield wrong("factor is text", x, "0.5", error=TypeError, match="is a str")


def arguments(factor: str) -> tuple[Argument, ...]:
    """Return what the page says of the two arguments."""
    return (
        Argument(
            name="x",
            type="Tensor",
            shape="any",
            dtype="any",
            gradient=True,
            text="The tensor that passes through. Integer and boolean ones have no gradient.",
        ),
        Argument(
            name=factor,
            type="float | Tensor",
            shape="broadcasts to x",
            dtype="real",
            text="What the gradient is multiplied by; any real number, 0 and negative ones among them. A tensor is "
            "cast to the dtype of a floating `x`, or of the parts of a complex one.",
        ),
    )


def placements(factor: str) -> tuple[Placements, ...]:
    """Return how the call works on DTensors: `x` may be placed anyhow, and the factor is whole on each rank."""
    return tuple(
        Placements(arguments={"x": place, factor: "replicate"}, output=place)
        for place in ("shard(0)", "shard(1)", "replicate")
    )


EFFECTS = Effects(view_of="x")
GRADIENT_MULTIPLIER = papers.CONVOLUTIONAL_SEQUENCES.reference(", section 3.5 (gradients of the encoder are scaled)")
REVERSAL = papers.GRADIENT_REVERSAL.reference(", equations 7 and 8 (a negative factor)")
DIFFLOGIC = papers.LOGIC_GATES.reference(" (the `grad_factor` of its logic layers)")
