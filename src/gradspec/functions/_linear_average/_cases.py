"""The contract of a memory bank: where its rows move to, cases, wrong calls, arguments and sources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from gradspec.functions import _papers as papers
from gradspec.spec import Argument, Case, Make, Misuse


def state_after(x: Tensor, y: Tensor, memory: Tensor, params: Tensor) -> dict[str, Tensor]:
    """Return the bank after one forward and one backward pass, row by row: the definition in plain steps."""
    momentum, after = params[1], memory.clone()
    for row, embedding in zip(y.tolist(), x, strict=True):
        new = momentum * memory[row] + (1 - momentum) * embedding
        norm = new.norm()
        after[row] = new / norm if norm > 0 else memory[row]
    return {"memory": after}


def cases(make: Make) -> Iterator[Case]:
    """Yield the representative calls."""

    def call(name: str, x: Tensor, rows: list[int], memory: Tensor, T: float = 0.5, momentum: float = 0.5) -> Case:  # noqa: N803
        y = torch.tensor(rows, dtype=torch.int64, device=x.device)
        params = torch.tensor([T, momentum], dtype=torch.float32, device=x.device)
        return Case(name=name, args=(x, y, memory, params))

    def zeroed(tensor: Tensor, row: int) -> Tensor:
        return tensor.index_fill(0, torch.tensor([row], device=tensor.device), 0)

    yield call("three of five rows", make(3, 4), [4, 0, 2], make(5, 4))
    yield call("published temperature", make(3, 4), [1, 3, 0], make(5, 4), T=0.07)
    yield call("repeated row", make(4, 3), [2, 0, 2, 2], make(3, 3))
    yield call("repeated row, the last embedding zero", zeroed(make(3, 3), 2), [1, 0, 1], zeroed(make(3, 3), 1))
    yield call("zero row", make(2, 3), [1, 2], zeroed(make(3, 3), 1))
    yield call("zero embedding", zeroed(make(2, 3), 0), [1, 2], make(3, 3))
    yield call("zero embedding on a zero row", zeroed(make(2, 3), 0), [1, 2], zeroed(make(3, 3), 1))
    yield call("momentum 0", make(2, 3), [0, 2], make(3, 3), momentum=0.0)
    yield call("momentum 1", make(2, 3), [0, 2], make(3, 3), momentum=1.0)
    yield call("more embeddings than rows", make(6, 3), [0, 1, 1, 0, 1, 0], make(2, 3))
    yield call("one embedding, one row, one feature", make(1, 1), [0], make(1, 1))
    yield call("transposed embeddings and bank", make(4, 2).T, [3, 1], make(4, 5).T)
    yield call("expanded embeddings", make(1, 4).expand(2, 4), [3, 1], make(5, 4))
    single = torch.float32
    yield call("float32", make(3, 4, dtype=single), [4, 0, 4], make(5, 4, dtype=single), T=0.07)
    in_double = call("params in float64", make(3, 4), [4, 0, 2], make(5, 4)).args
    yield Case(name="params in float64", args=(*in_double[:-1], in_double[-1].double()))
    yield call("empty batch", make(0, 3), [], make(4, 3))
    yield call("empty batch and bank", make(0, 3), [], make(0, 3))


def misuses(make: Make) -> Iterator[Misuse]:
    """Yield the wrong calls, and the error that each gets."""
    x, memory, params = make(2, 3), make(4, 3), make(2, low=0, high=1)
    y = torch.tensor([3, 1], device=x.device)

    def wrong(name: str, *, error: type[Exception] = ValueError, match: str, **changed: Any) -> Misuse:
        args = {"x": x, "y": y, "memory": memory, "params": params} | changed
        return Misuse(case=Case(name=name, args=tuple(args.values())), error=error, match=match)

    if x.device.type == "cpu":  # on a GPU the device asserts it, and that ends the process
        past = torch.tensor([0, 4])
        yield wrong("row past the bank", y=past, error=IndexError, match="y holds 4, and the bank has 4 rows")
        yield wrong("negative row", y=torch.tensor([0, -1]), error=IndexError, match="y holds -1, .* 4 rows")
    yield wrong("devices that do not fit", y=y.to("meta"), match="y is on meta and memory on")
    yield wrong("rows in int32", y=y.int(), error=TypeError, match="y has dtype torch.int32, .*Give y.long()")
    yield wrong("rows in floats", y=y.double(), error=TypeError, match="y has dtype torch.float64")
    yield wrong("rows of another batch", y=y[:1], match="y has shape \\(1,\\); give one row for each of the 2")
    yield wrong("rows in a column", y=y[:, None], match="y has shape \\(2, 1\\)")
    yield wrong("argument in a list", y=[3, 1], error=TypeError, match="y is a list, expected a tensor")
    yield wrong("other feature size", x=make(2, 4), match="x has shape \\(2, 4\\) .* give x as \\(B, 3\\)")
    yield wrong("embedding without a batch", x=make(3), match="x has shape \\(3,\\)")
    yield wrong("integer embeddings", x=make(2, 3, dtype=torch.int64), error=TypeError, match="expected a floating")
    yield wrong("complex embeddings", x=make(2, 3, dtype=torch.complex128), error=TypeError, match="floating one")
    yield wrong("embeddings of another dtype", x=x.float(), match="x is torch.float32 and memory torch.float64")
    yield wrong("bank of another rank", memory=make(4, 3, 1), match="memory has shape \\(4, 3, 1\\), expected")
    yield wrong("bank that requires grad", memory=make(4, 3).requires_grad_(), match="memory is differentiated")
    yield wrong(
        "params that require grad", params=make(2, low=0, high=1).requires_grad_(), match="params is differentiated"
    )
    yield wrong("params of another shape", params=make(3), match="params has shape \\(3,\\), expected \\(2,\\)")
    yield wrong("integer params", params=params.long(), error=TypeError, match="params has dtype torch.int64, expected")
    yield wrong("argument in a tuple", params=(0.07, 0.5), error=TypeError, match="params is a tuple")


ARGUMENTS = (
    Argument(
        name="x",
        type="Tensor",
        shape="(B, D)",
        dtype="floating",
        gradient=True,
        text="The embeddings, used as given: normalise them before.",
    ),
    Argument(
        name="y",
        type="Tensor",
        shape="(B,)",
        dtype="int64",
        range="0 <= y < N",
        text="The row of each embedding: the number of the instance, not its class.",
    ),
    Argument(
        name="memory",
        type="Tensor",
        shape="(N, D)",
        dtype="same as x",
        text="The bank. Its rows `y` move at the end of the backward pass.",
    ),
    Argument(
        name="params",
        type="Tensor",
        shape="(2,)",
        dtype="floating",
        range="params[0] > 0, 0 <= params[1] <= 1, not checked",
        text="The temperature T, and the momentum: the share of the old row.",
    ),
)
WU_2018 = papers.INSTANCE_DISCRIMINATION.reference(", equation 2 and section 3.1")
