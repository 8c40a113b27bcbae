"""The contract of the linear cross-entropy: cases, wrong calls, arguments and sources."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from gradspec.functions import _papers as papers
from gradspec.functions._linear_cross_entropy._loss import linear_cross_entropy
from gradspec.spec import Argument, Case, Make, Misuse


def cases(make: Make) -> Iterator[Case]:
    """Yield the representative calls.

    A weight of more than 512 rows is read by flash attention; of 8 features or more, what its gradient needs is kept.
    """
    near = partial(make, low=-1, high=1)

    def case(name: str, batch: int, size: int, features: int, **options: Any) -> Case:
        target = make(batch, dtype=torch.int64).abs() % size
        return Case(name=name, args=(near(batch, features), near(size, features), target), kwargs=options)

    yield case("few classes", 3, 5, 4)
    yield case("many classes", 2, 600, 3)
    yield case("many classes and features", 2, 520, 8)
    yield case("bias", 3, 5, 4, bias=near(5))
    yield case("bias, many classes", 2, 600, 2, bias=near(600))
    yield case("label smoothing", 3, 5, 4, label_smoothing=0.1)
    yield case("label smoothing, many classes", 2, 530, 2, label_smoothing=0.1, bias=near(530))
    yield case("margin", 3, 5, 4, margin=0.35, temperature=0.5)
    yield case("a margin for each row", 3, 5, 4, margin=near(3), temperature=0.5)
    yield case("a margin for each row, many classes", 2, 520, 2, margin=near(2), bias=near(520), label_smoothing=0.1)
    yield case("0-d tensor temperature", 3, 5, 4, temperature=make(low=0.5, high=1.5))
    yield case("float32 tensor temperature", 3, 5, 4, temperature=make(low=0.5, high=1.5, dtype=torch.float32))
    yield case("no label smoothing", 3, 5, 4, label_smoothing=0.0)
    yield case("only label smoothing", 3, 5, 4, label_smoothing=1.0)
    yield case("one row", 1, 7, 4)
    yield case("one class", 3, 1, 4)
    yield case("one feature", 3, 5, 1)
    x, weight = near(4, 3), near(5, 3)
    yield Case(name="repeated classes", args=(x, weight, torch.tensor([2, 0, 2, 2], device=x.device)))
    ignored = torch.tensor([2, -100, 4, 0], device=x.device)
    yield Case(name="an ignored row", args=(near(4, 3), near(5, 3), ignored))
    yield Case(
        name="an ignored class, many classes",
        args=(near(3, 2), near(520, 2), torch.tensor([7, 519, 3], device=x.device)),
        kwargs={"ignore_index": 7, "bias": near(520)},
    )
    single = partial(near, dtype=torch.float32)
    yield Case(
        name="float32",
        args=(single(3, 4), single(5, 4), make(3, dtype=torch.int64).abs() % 5),
        kwargs={"bias": single(5), "margin": single(3)},
    )
    yield Case(name="large logits", args=_large_logits(make))
    yield Case(
        name="transposed rows and weight",
        args=(near(4, 3).T, near(4, 5).T, make(3, dtype=torch.int64).abs() % 5),
    )
    yield case("empty batch", 0, 5, 4)


def _large_logits(make: Make) -> tuple[Any, ...]:
    """Return logits beyond the range of exp, next to small ones, and a large loss next to small ones.

    Were each row as good as certain, each loss and each derivative would be only rounding.
    """
    far = partial(make, low=-18, high=18)
    x, weight, target = torch.cat((far(1, 4) / 3240, far(2, 4))), far(5, 4), make(3, dtype=torch.int64).abs() % 5
    target[1] = (x[1] @ weight.mT).argmin()
    return x, weight, target


def misuses(make: Make) -> Iterator[Misuse]:
    """Yield the wrong calls, and the error that each gets."""
    x, weight = make(2, 3), make(4, 3)
    target = torch.tensor([1, 3], device=x.device)

    def wrong(name: str, *args: Any, error: type[Exception] = ValueError, match: str, **options: Any) -> Misuse:
        given = (*args, *(x, weight, target)[len(args) :])
        return Misuse(case=Case(name=name, args=given, kwargs=options), error=error, match=match)

    if x.device.type == "cpu":  # on a GPU the device asserts it, and that ends the process
        large = target + 1
        yield wrong("class too large", x, weight, large, error=IndexError, match="target holds 4, .* rows 0 to 3")
        yield wrong("negative class", x, weight, target - 2, error=IndexError, match="target holds -1")
    yield wrong("classes of int32", x, weight, target.int(), error=TypeError, match=r"int32.* Write target\.long\(\)")
    yield wrong("probabilities", x, weight, make(2, 4), error=TypeError, match="target has dtype torch.float64")
    yield wrong("one class too few", x, weight, target[:1], match=r"\(2, 3\) and target \(1,\)")
    yield wrong("other number of features", x, make(4, 2), match="3 features and the weight 2")
    yield wrong("one row without a batch", x[0], weight, target[:1], match=r"expected \(B, D\) and \(N, D\)$")
    yield wrong("a batch of sequences", make(2, 5, 3), match=r"Write x\.flatten\(0, -2\) and target\.flatten\(\)")
    yield wrong("weight of another dtype", x, weight.float(), error=TypeError, match="expected one dtype")
    yield wrong("integer rows", x.long(), error=TypeError, match="expected a floating one")
    yield wrong("weight is no tensor", x, [[1.0]], error=TypeError, match="weight is a list, expected a tensor")
    yield wrong("no class", x, weight[:0], match="the weight has no row")
    yield wrong("bias of another size", bias=make(3), match=r"weight has shape \(4, 3\) and bias \(3,\)")
    yield wrong("bias of another dtype", bias=make(4).float(), error=TypeError, match="bias has dtype torch.float32")
    yield wrong("margin of another size", margin=make(3), match=r"margin has shape \(3,\), expected .* \(2,\)")
    yield wrong("margin of another dtype", margin=make(2).float(), error=TypeError, match="margin has dtype")
    yield wrong("margin is text", margin="0.35", error=TypeError, match="margin is a str")
    yield wrong("temperature 0", temperature=0.0, match="temperature is 0.0, expected a finite number above 0")
    yield wrong("temperature is text", temperature="1", error=TypeError, match="temperature is a str")
    yield wrong("temperature requires grad", temperature=make().requires_grad_(), match="temperature is diff")
    yield wrong("label smoothing above 1", label_smoothing=1.5, match="label_smoothing is 1.5, expected .* 0 to 1")
    yield wrong("label smoothing is text", label_smoothing="0", error=TypeError, match="label_smoothing is a str")
    yield wrong("negative label smoothing", label_smoothing=-0.1, match="label_smoothing is -0.1")
    yield wrong("integer temperature", temperature=target[0], error=TypeError, match="expected a floating")
    yield wrong("negative temperature", temperature=-0.07, match="temperature is -0.07")
    yield wrong("devices that do not fit", x, weight, target.to("meta"), match="x is on .* and target on meta")
    option = Case(name="reduction that is not a choice", args=(x, weight, target), kwargs={"reduction": "max"})
    yield Misuse(case=option, error=ValueError, match="reduction is 'max'", call=linear_cross_entropy)
    option = Case(name="mesh that is text", args=(x, weight, target), kwargs={"mesh": "cpu"})
    yield Misuse(
        case=option, error=TypeError, match="mesh is a str, expected a .*DeviceMesh", call=linear_cross_entropy
    )
    yield wrong("no ignored class", ignore_index=None, error=TypeError, match="ignore_index is a NoneType")


ARGUMENTS = (
    Argument(name="x", type="Tensor", shape="(B, D)", dtype="floating", gradient=True, text="The rows to classify."),
    Argument(
        name="weight",
        type="Tensor",
        shape="(N, D)",
        dtype="same as x",
        gradient=True,
        text="A row for each class, one or more.",
    ),
    Argument(
        name="target",
        type="Tensor",
        shape="(B,)",
        dtype="int64",
        text="The class of each row, from 0 to N - 1, or `ignore_index`.",
    ),
    Argument(
        name="bias",
        type="Tensor | None",
        shape="(N,)",
        dtype="same as x",
        gradient=True,
        text="What is added to the product with each class.",
    ),
    Argument(
        name="margin",
        type="Tensor | float | None",
        shape="(B,)",
        dtype="same as x",
        gradient=True,
        text="What is taken from the product of each row with its own class.",
    ),
    Argument(
        name="temperature",
        type="float | Tensor",
        shape="()",
        dtype="floating",
        range="temperature > 0",
        text="What all of that is divided by. The value of a tensor is not checked.",
    ),
    Argument(name="ignore_index", type="int", text="Rows of this target have a loss of 0 and no gradient."),
    Argument(
        name="label_smoothing",
        type="float",
        range="0 <= label_smoothing <= 1",
        text="The share of the target that is spread evenly over all classes.",
    ),
)
REFERENCES = (
    papers.CUT_CROSS_ENTROPY.reference(", section 4"),
    papers.FLASH_ATTENTION.reference(),
    papers.LABEL_SMOOTHING.reference(", section 7: label smoothing"),
    papers.COSFACE.reference(", equation 4: the margin"),
)
