"""The spec of `LinearAverage`, the module of a memory bank."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gradspec.functions._linear_average._cases import ARGUMENTS, WU_2018
from gradspec.nn._memory_bank._module import LinearAverage
from gradspec.spec import Argument, Make, Misuse, ModuleCase, ModuleSpec, ModuleSupports, StateContract


def _state(inputSize: int, outputSize: int, T: float = 0.07, momentum: float = 0.5) -> StateContract:  # noqa: N803
    return StateContract(keys=("params", "memory"))


def _rows(like: Tensor, *numbers: int) -> Tensor:
    return torch.tensor(numbers, device=like.device)


def _cases(make: Make) -> Iterator[ModuleCase]:
    x = make(3, 4)
    yield ModuleCase(name="five rows", args=(4, 5, 0.5), inputs=(x, _rows(x, 4, 0, 2)), output=(5,))
    x = make(3, 2)
    yield ModuleCase(
        name="repeated row, in training", args=(2, 3), inputs=(x, _rows(x, 1, 0, 1)), output=(3,), training=True
    )
    for momentum in (0.0, 1.0):
        name, made = f"momentum {momentum:g}", (2, 3, 0.5, momentum)
        yield ModuleCase(name=name, args=made, inputs=(x, _rows(x, 1, 0, 2)), output=(3,), training=True)


def _misuses(make: Make) -> Iterator[Misuse]:
    x = make(2, 4, dtype=torch.float32)
    y = _rows(x, 0, 1)

    def made(name: str, *args: Any, error: type[Exception] = ValueError, match: str) -> Misuse:
        return Misuse(case=ModuleCase(name=name, args=args), error=error, match=match)

    def called(name: str, *inputs: Any, error: type[Exception] = ValueError, match: str) -> Misuse:
        return Misuse(case=ModuleCase(name=name, args=(4, 5), inputs=inputs, training=True), error=error, match=match)

    yield made("temperature 0", 4, 5, 0.0, match=r"T is 0\.0; write a temperature above 0")
    yield made("momentum above 1", 4, 5, 0.07, 1.5, match=r"momentum is 1\.5; write .* between 0 and 1")
    yield made("negative momentum", 4, 5, 0.07, -0.5, match=r"momentum is -0\.5; write .* between 0 and 1")
    yield made("size below 1", 4, 0, match="outputSize is 0; write 1 or more")
    yield made("size is a float", 4.0, 5, error=TypeError, match=r"inputSize is 4\.0; write an integer")
    yield made("momentum is text", 4, 5, 0.07, "0.5", error=TypeError, match="momentum is a str; write a number")
    yield made("temperature is text", 4, 5, "0.07", error=TypeError, match="T is a str; write a number")
    if x.device.type == "cpu":  # on a GPU the device asserts it, and that ends the process
        yield called("row past the bank", x, _rows(x, 0, 5), error=IndexError, match="y holds 5, and the bank has 5")
        yield called("negative row", x, _rows(x, 0, -1), error=IndexError, match="y holds -1, and the bank has 5 rows")
    yield called("rows in int32", x, y.int(), error=TypeError, match=r"y has dtype torch\.int32")
    yield called("other feature size", make(2, 3, dtype=torch.float32), y, match=r"give x as \(B, 4\)")
    yield called("embeddings of another dtype", x.double(), y, match=r"x is torch\.float64 and memory torch\.float32")


LINEAR_AVERAGE = ModuleSpec(
    name="linear_average",
    module=LinearAverage,
    cases=_cases,
    raises=_misuses,
    state=_state,
    wrt=("x",),
    written_in_backward=("memory",),
    arguments=(
        Argument(name="inputSize", type="int", text="D, the features of an embedding."),
        Argument(name="outputSize", type="int", text="N, the instances of the data set."),
        Argument(name="T", type="float", range="T > 0", text="The temperature."),
        Argument(
            name="momentum", type="float", range="0 <= momentum <= 1", text="The share of the old row in the new."
        ),
        Argument(name="mesh", type="DeviceMesh | None", text="The ranks that share the rows; None for one process."),
    ),
    inputs=(
        replace(ARGUMENTS[0], shape="(B, inputSize)", dtype="same as the module"),
        replace(ARGUMENTS[1], range="0 <= y < outputSize"),
    ),
    documented=(LinearAverage,),
    references=(WU_2018,),
    supports=ModuleSupports.all(),
)
