"""The contract of the instance-discrimination loss: cases, wrong calls, arguments and sources."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from gradspec.functions import _papers as papers
from gradspec.functions._instance_discrimination._function import instance_discrimination_loss
from gradspec.functions._linear_cross_entropy._log_sum_exp import merge_by_log_sum_exp
from gradspec.spec import Argument, Case, Make, Misuse


def cases(make: Make) -> Iterator[Case]:
    """Yield the representative calls. A bank of more than 512 rows is read by flash attention."""
    near = partial(make, low=-1, high=1)

    def case(name: str, batch: int, size: int, features: int, temperature: Any = 0.5, **how: Any) -> Case:
        y = make(batch, dtype=torch.int64).abs() % size
        x, memory = near(batch, features, **how), near(size, features, **how)
        return Case(name=name, args=(x, y, memory, temperature))

    yield case("small bank", 3, 5, 4)
    yield case("large bank", 2, 600, 3)
    yield case("large bank, one feature", 3, 520, 1)
    yield case("temperature 0.07", 3, 5, 4, 0.07)
    yield case("0-d tensor temperature", 3, 5, 4, make(low=0.5, high=1.5))
    yield case("0-d tensor temperature, large bank", 2, 530, 3, make(low=0.5, high=1.5))
    yield case("float32 tensor temperature", 3, 5, 4, make(low=0.5, high=1.5, dtype=torch.float32))
    yield case("one embedding", 1, 7, 4)
    yield case("one row", 3, 1, 4)
    yield case("one feature", 3, 5, 1)
    x, memory = near(4, 3), near(5, 3)
    yield Case(name="repeated instances", args=(x, torch.tensor([2, 0, 2, 4], device=x.device), memory, 0.5))
    yield Case(name="large logits", args=_large_logits(make))
    yield Case(
        name="transposed embeddings and bank",
        args=(near(4, 3).T, make(3, dtype=torch.int64).abs() % 5, near(4, 5).T, 0.5),
    )
    yield Case(
        name="transposed large bank",
        args=(near(3, 2).T, make(2, dtype=torch.int64).abs() % 540, near(3, 540).T, 0.5),
    )
    # So hot that float32 has digits left, whatever a law draws: the softmax of large logits loses them.
    yield case("float32", 3, 5, 4, 100.0, dtype=torch.float32)
    yield case("empty batch", 0, 5, 4)


def _large_logits(make: Make) -> tuple[Any, ...]:
    """Return logits beyond the range of exp, next to small ones, and a large loss next to small ones.

    Were each row as good as certain, each loss and each derivative would be only rounding.
    """
    far = partial(make, low=-9, high=9)
    x, memory, y = torch.cat((far(1, 4) / 810, far(2, 4))), far(5, 4), make(3, dtype=torch.int64).abs() % 5
    y[1] = (x[1] @ memory.mT).argmin()
    return x, y, memory, 0.25


def misuses(make: Make) -> Iterator[Misuse]:
    """Yield the wrong calls, and the error that each gets."""

    def wrong(name: str, *args: Any, error: type[Exception] = ValueError, match: str, **how: Any) -> Misuse:
        return Misuse(case=Case(name=name, args=args), error=error, match=match, **how)

    x, memory = make(2, 3), make(4, 3)
    y = torch.tensor([1, 3], device=x.device)
    if x.device.type == "cpu":  # on a GPU the device asserts it, and that ends the process
        yield wrong("instance too large", x, y + 1, memory, 0.5, error=IndexError, match="y holds 4, .* rows 0 to 3")
        yield wrong("negative instance", x, y - 2, memory, 0.5, error=IndexError, match="y holds -1")
    yield wrong("instances of int32", x, y.int(), memory, 0.5, error=TypeError, match=r"int32.* Write y\.long\(\)")
    yield wrong("one instance too few", x, y[:1], memory, 0.5, match=r"\(2, 3\) and y \(1,\)")
    yield wrong("other number of features", x, y, make(4, 2), 0.5, match="3 features and the bank 2")
    yield wrong("one embedding without a batch", x[0], y[:1], memory, 0.5, match=r"expected \(B, D\) and \(N, D\)")
    yield wrong("devices that do not fit", x, y.to("meta"), memory, 0.5, match="x is on .* and y on meta")
    yield wrong("bank of another dtype", x, y, memory.float(), 0.5, error=TypeError, match="expected one dtype")
    yield wrong("integer embeddings", x.long(), y, memory, 0.5, error=TypeError, match="expected a floating one")
    yield wrong("bank is no tensor", x, y, [[1.0]], 0.5, error=TypeError, match="memory is a list, expected a tensor")
    yield wrong("empty bank", x, y, memory[:0], 0.5, match="the bank has no row")
    yield wrong("bank requires grad", x, y, make(4, 3).requires_grad_(), 0.5, match=r"memory is differentiated")
    yield wrong("temperature 0", x, y, memory, 0.0, match="temperature is 0.0, expected a finite number above 0")
    yield wrong("negative temperature", x, y, memory, -0.07, match="temperature is -0.07")
    yield wrong("temperature is not a number", x, y, memory, float("nan"), match="temperature is nan")
    yield wrong("temperature is text", x, y, memory, "0.07", error=TypeError, match="temperature is a str")
    yield wrong(
        "integer temperature", x, y, memory, torch.ones_like(y[0]), error=TypeError, match="expected a floating"
    )
    yield wrong("a temperature for each row", x, y, memory, make(2), match=r"expected one number, shape \(\)")
    yield wrong("temperature requires grad", x, y, memory, make().requires_grad_(), match="temperature is diff")
    option = Case(name="reduction that is not a choice", args=(x, y, memory, 0.5), kwargs={"reduction": "max"})
    yield Misuse(case=option, error=ValueError, match="reduction is 'max'", call=instance_discrimination_loss)
    merge = merge_by_log_sum_exp
    yield wrong(
        "slices that do not fit", make(2, 3, 4), make(2, 4), match=r"outputs have shape \(2, 3, 4\)", call=merge
    )
    yield wrong("nothing to merge", make(0, 3, 4), make(0, 3), match="there is no slice to merge", call=merge)


ARGUMENTS = (
    Argument(
        name="x",
        type="Tensor",
        shape="(B, D)",
        dtype="floating",
        gradient=True,
        text="The embeddings, used as they are given, not normalised.",
    ),
    Argument(
        name="y",
        type="Tensor",
        shape="(B,)",
        dtype="int64",
        range="0 <= y < N",
        text="The row of the bank that each embedding is an instance of.",
    ),
    Argument(name="memory", type="Tensor", shape="(N, D)", dtype="same as x", text="The bank, of one row or more."),
    Argument(
        name="temperature",
        type="float | Tensor",
        shape="()",
        dtype="floating",
        range="temperature > 0",
        text="What the logits are divided by. The value of a tensor is not checked.",
    ),
)
WU_2018 = papers.INSTANCE_DISCRIMINATION.reference(", equations 2 and 3")
FLASH_2022 = papers.FLASH_ATTENTION.reference()
