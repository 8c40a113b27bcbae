"""The contract of Shake-Shake with given noise: cases, wrong calls, arguments and sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from gradspec.functions import _papers as papers
from gradspec.functions._shake_shake._function import ShakeShake, shake_shake
from gradspec.spec import Argument, Case, Make, Misuse


def cases(make: Make) -> Iterator[Case]:
    """Yield the representative calls."""

    def branches(*shape: int, dtype: torch.dtype | None = None) -> tuple[Any, Any]:
        return make(*shape, dtype=dtype), make(*shape, dtype=dtype)

    def weight(*shape: int, dtype: torch.dtype | None = None) -> Any:
        # Whole 64ths: every dtype holds them, and their complements, exactly.
        return (make(*shape, dtype=dtype, low=0, high=1) * 64).round() / 64

    yield Case(name="rows", args=(*branches(3, 4), weight(3, 1), weight(3, 1)))
    yield Case(name="sequences", args=(*branches(2, 3, 4), weight(2, 1, 1), weight(2, 1, 1)))
    yield Case(name="images", args=(*branches(2, 3, 4, 5), weight(2, 1, 1, 1), weight(2, 1, 1, 1)))
    channels_last = [x.to(memory_format=torch.channels_last) for x in branches(2, 3, 4, 5)]
    yield Case(name="channels-last images", args=(*channels_last, weight(2, 1, 1, 1), weight(2, 1, 1, 1)))
    yield Case(name="transposed branch", args=(make(4, 3).T, make(3, 4), weight(3, 1), weight(3, 1)))
    yield Case(name="expanded branch", args=(make(3, 1).expand(3, 4), make(3, 4), weight(3, 1), weight(3, 1)))
    yield Case(name="one dimension", args=(*branches(3), weight(3), weight(3)))
    yield Case(name="one weight a batch", args=(*branches(3, 4), weight(1, 1), weight(1, 1)))
    yield Case(name="0-d weights", args=(*branches(3, 4), weight(), weight()))
    yield Case(name="0-d branches", args=(*branches(), weight(), 0.25))
    yield Case(name="even both ways", args=(*branches(3, 4), 0.5, 0.5))
    yield Case(name="even forward", args=(*branches(3, 4), 0.5, weight(3, 1)))
    yield Case(name="even backward", args=(*branches(3, 4), weight(3, 1), 0.5))
    yield Case(name="all from the first branch, gradient to the second", args=(*branches(3, 4), 1.0, 0.0))
    one = weight() * 0 + 1
    yield Case(name="all from the second branch, gradient to the first", args=(*branches(3, 4), 1 - one, one))
    yield Case(name="integer weights", args=(*branches(3, 4), one.long(), 1 - one.long()))
    single = torch.float32
    yield Case(
        name="float32 branches",
        args=(*branches(3, 4, dtype=single), weight(3, 1, dtype=single), weight(3, 1, dtype=single)),
    )
    yield Case(name="empty batch", args=(*branches(0, 4), weight(0, 1), weight(0, 1)))


def misuses(make: Make) -> Iterator[Misuse]:
    """Yield the wrong calls, and the error that each gets."""

    def wrong(name: str, *args: Any, error: type[Exception] = ValueError, match: str, **how: Any) -> Misuse:
        return Misuse(case=Case(name=name, args=args), error=error, match=match, **how)

    x1, x2, one = make(3, 4), make(3, 4), make(3, 1)
    yield wrong("branches that would broadcast", x1, make(3, 1), one, one, match=r"\(3, 4\) and \(3, 1\)")
    yield wrong("branches of two ranks", x1, make(4), one, one, match=r"\(3, 4\) and \(4,\)")
    yield wrong("branches of two dtypes", x1, make(3, 4, dtype=torch.float32), one, one, match="float64 and .*float32")
    yield wrong("branches whose devices differ", x1, x2.to("meta"), one, one, match="are on .* and meta")
    yield wrong("integer branches", *[make(3, dtype=torch.int64)] * 2, 0.5, 0.5, error=TypeError, match="floating")
    yield wrong("branch is no tensor", x1, [1.0], one, one, error=TypeError, match="x2 is a list, expected a tensor")
    yield wrong("weight requires grad", x1, x2, make(3, 1).requires_grad_(), one, match="alpha requires grad")
    yield wrong("beta does not broadcast", x1, x2, one, make(2, 1), match="does not broadcast")
    yield wrong("weight is text", x1, x2, "0.5", one, error=TypeError, match="alpha is a str")
    yield wrong("complex weight", x1, x2, 1j, one, error=TypeError, match="alpha is the complex 1j, expected a real")
    yield wrong(
        "complex tensor as a weight", x1, x2, make(dtype=torch.complex128), one, error=TypeError, match="a real one"
    )
    yield wrong(
        "complex weight in backward",
        x1,
        x2,
        one,
        make(dtype=torch.complex128),
        error=TypeError,
        match="expected a real one",
    )
    yield wrong("no batch to draw along", make(), make(), match="expected a batch first", call=ShakeShake.apply)
    option = Case(name="option that is not a choice", args=(x1, x2), kwargs={"forward": "keep"})
    yield Misuse(case=option, error=ValueError, match="forward is 'keep', expected one of", call=shake_shake)


def probe(n: int, x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
    """Return branches of n samples that are 1 and 0, so that the mixture is alpha and the gradient of x1 is beta."""
    shape = (n, *(min(size, 2) for size in x1.shape[1:]))
    return x1.new_ones(shape), x2.new_zeros(shape)


def recover(y: Tensor, gradients: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights that were drawn in a call on `probe`, a row a sample."""
    return {"alpha": y.reshape(len(y), -1), "beta": gradients["x1"].reshape(len(y), -1)}


def _weight(name: str, text: str) -> Argument:
    text += " A tensor is cast to the dtype of `x1`."
    within = f"0 <= {name} <= 1, not checked"
    return Argument(name=name, type="float | Tensor", shape="broadcasts to x1", dtype="real", range=within, text=text)


ARGUMENTS = (
    Argument(name="x1", type="Tensor", shape="any", dtype="floating", gradient=True, text="The first branch."),
    Argument(
        name="x2", type="Tensor", shape="same as x1", dtype="same as x1", gradient=True, text="The second branch."
    ),
    _weight("alpha", "How much of the first branch the output takes."),
    _weight("beta", "How much of the cotangent the first branch gets."),
)
SHAKE_SHAKE_2017 = papers.SHAKE_SHAKE.reference(
    ", equation 2 and section 2 (the modes: Even, Shake, Keep; Batch, Image)"
)
