"""What the search does not ask, and what it lets pass, is a limit of torch; a function that is broken is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from fuzz.compare import TORCH_REFUSES, Answer, difference, of_reference
from fuzz.examples import Example
from fuzz.search import search
from fuzz.tensors import Drawn
from fuzz.transforms import LOSSES, limit
from gradspec.functions import FUNCTIONS

SPECS = {spec.name: spec for spec in FUNCTIONS}
LOSS = {
    "x": Drawn((2, 2)),
    "y": Drawn((2,), "int64", low=0, high=3),
    "memory": Drawn((3, 2), seed=5),
    "temperature": 0.5,
}


BANK = {
    "x": Drawn((1, 2)),
    "y": Drawn((1,), "int64", low=0, high=3),
    "memory": Drawn((3, 2), seed=5),
    "params": Drawn((2,), low=0.25),
}


def of_bank(*transforms: str) -> Example:
    return Example("linear_average_op", BANK, ("x",), (), transforms)


def of_loss(*transforms: str, **changed: Any) -> Example:
    return Example("instance_discrimination_loss", {**LOSS, **changed}, ("x",), (), transforms)


class Sine(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.sin()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_forward(*inputs)

    @staticmethod
    def jvp(ctx: Any, x_dot: Tensor) -> Tensor:
        return x_dot * ctx.saved_tensors[0].cos()


def test_that_torch_takes_the_jvp_of_any_function_for_a_constant() -> None:
    assert limit(LOSSES[0], ("jvp", "jacfwd")).startswith("forward over forward")
    of_sine = torch.func.jacfwd(torch.func.jacfwd(Sine.apply))(torch.tensor(0.5))
    assert of_sine.item() == 0.0  # and not -sin(0.5): the limit is to go once this fails
    assert "expected" in difference(SPECS[LOSSES[0]], of_loss("jvp", "jvp"))


def test_that_torch_widens_the_tangent_of_a_number_in_single_precision() -> None:
    x = torch.tensor(0.5)
    y, y_dot = torch.func.jvp(lambda x: x * 0.5, (x,), (x,))
    assert (y.dtype, y_dot.dtype) == (torch.float32, torch.float64)


@pytest.mark.parametrize("transforms", [("dual", "autograd", "checkpoint"), ("dual", "checkpoint", "autograd")])
def test_that_it_is_the_cross_entropy_of_torch_that_is_wrong_there(transforms: tuple[str, ...]) -> None:
    assert limit(LOSSES[0], transforms).startswith("torch's own cross_entropy")
    spec, example = SPECS[LOSSES[0]], of_loss(*transforms)
    ours = Answer(spec.function, example, example.built()).tensors
    by_func = of_loss("jvp", "grad")
    right = of_reference(spec, by_func, by_func.built()).tensors
    theirs = of_reference(spec, example, example.built()).tensors
    torch.testing.assert_close(ours, right)
    assert not torch.allclose(theirs[0], right[0])


def test_that_torch_refuses_a_reference_in_these_words() -> None:
    refused = (
        of_loss("jacfwd", "grad", "jacfwd", x=Drawn((0, 2)), y=Drawn((0,), "int64")),
        of_loss("dual", "autograd"),
    )
    said = [str(of_reference(SPECS[LOSSES[0]], one, one.built()).error) for one in refused]
    assert [words in line for words, line in zip(TORCH_REFUSES, said, strict=True)] == [True, True]


def test_that_a_recomputation_after_a_backward_pass_reads_a_bank_that_has_moved() -> None:
    around_both = of_bank("autograd", "autograd", "checkpoint")
    assert limit("linear_average_op", around_both.transforms).startswith("a recomputation")
    assert "expected" in difference(SPECS["linear_average_op"], around_both)
    assert difference(SPECS["linear_average_op"], of_bank("autograd", "checkpoint", "autograd")) == ""


def _no_factor(ctx: Any, grad_y: Tensor) -> tuple[Tensor, None]:
    return grad_y, None


def _in_single(ctx: Any, grad_y: Tensor) -> tuple[Tensor, None]:
    return (ctx.coefficient * grad_y).to(torch.bfloat16).to(grad_y.dtype), None


def _first_order(ctx: Any, grad_y: Tensor) -> tuple[Tensor, None]:
    return (ctx.coefficient * grad_y).detach(), None


@pytest.mark.parametrize(
    "backward", [_no_factor, *(pytest.param(one, marks=pytest.mark.slow) for one in (_in_single, _first_order))]
)
def test_that_a_broken_backward_is_found(backward: Any) -> None:
    from gradspec.functions import GradFactor

    class Broken(GradFactor):
        pass

    Broken.backward = staticmethod(backward)  # type: ignore[method-assign]
    broken = replace(SPECS["grad_factor"], function=Broken.apply)
    with pytest.raises(AssertionError, match=r"expected|raised") as caught:
        search(broken, 100)
    assert "Example(spec='grad_factor'" in str(caught.value)


def test_that_a_bank_that_does_not_move_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradspec.functions._linear_average._pending.move_rows", lambda *args: None)
    said = difference(SPECS["linear_average_op"], of_bank("autograd"))
    assert said.startswith("memory is [[")
    assert "afterwards, expected" in said
