"""What `wrt` names is a tensor that a gradient can flow to: of anything else a check says so, and does not pass."""

import warnings
from dataclasses import dataclass

import pytest
import torch
from torch.utils._pytree import tree_map

from gradspec import Case, FunctionSpec, verify
from gradspec.law import Status
from gradspec.laws import LAWS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what torch will have no more, or has on trial
    COMPLEX32 = torch.ones(3).to(torch.complex32)
    QUANTISED = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8)


@dataclass
class Pair:
    first: torch.Tensor
    second: torch.Tensor


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Pair(torch.ones(2), torch.ones(2)), "which is a Pair: make its tensors arguments of their own"),
        (torch.ones(3).to(torch.float8_e4m3fn), "which is of float8_e4m3fn: no law judges a gradient in 8 bits"),
    ],
)
def test_what_no_law_judges_is_an_error(value, said):
    spec = FunctionSpec(name="odd", function=lambda x: x, primal=lambda x: x, wrt=("x",), cases=[(value,)])
    (verdict,) = verify([spec], [law for law in LAWS if law.name == "vjp"]).of(law="vjp")

    assert verdict.status is Status.ERROR
    assert said in verdict.finding.message


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (torch.ones(3, device="meta"), "on the device meta, which holds no numbers"),
        (COMPLEX32, "use complex64"),
        (torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged), "nested: no law judges one"),
    ],
)
def test_a_tensor_that_no_law_compares_is_one_line_and_accuses_nobody(value, said):
    spec = FunctionSpec(
        name="odd",
        function=lambda x: 3 * x,
        primal=lambda x: 3 * x,
        wrt=("x",),
        cases=lambda make: [Case(name="one", args=(value,))],
    )
    found = verify([spec], [law for law in LAWS if law.name in ("primal", "vjp", "layout")]).verdicts

    assert {verdict.status for verdict in found} <= {Status.ERROR, Status.NOT_MEASURED}
    assert said in next(verdict.finding.message for verdict in found if verdict.law == "primal")


class ToHalf(torch.autograd.Function):
    """Three times a float64, in float16."""

    @staticmethod
    def forward(ctx, x):
        return (3 * x).half()

    @staticmethod
    def backward(ctx, y_bar):
        return 3 * y_bar.double()


class Wrapper(torch.Tensor):
    """A tensor that has no memory of its own."""

    @staticmethod
    def __new__(cls, held):
        kind = {"dtype": held.dtype, "requires_grad": held.requires_grad}
        return torch.Tensor._make_wrapper_subclass(cls, held.shape, **kind)

    def __init__(self, held):
        self.held = held

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args, kwargs = tree_map(lambda t: t.held if isinstance(t, cls) else t, (args, kwargs or {}))
        return tree_map(lambda t: cls(t) if isinstance(t, torch.Tensor) else t, func(*args, **kwargs))


def threefold(x, *others):
    return 3 * x


@pytest.mark.parametrize(
    ("function", "primal", "values", "law"),
    [
        (ToHalf.apply, lambda x: (3 * x).half(), (torch.tensor([0.5, -1.5, 2.0], dtype=torch.float64),), "surrogate"),
        (threefold, threefold, (Wrapper(torch.ones(3)),), "aliasing"),
        (lambda x, q: threefold(x), threefold, (torch.arange(3.0), QUANTISED), "layout"),
        (lambda x, q: threefold(x), threefold, (torch.arange(3.0), QUANTISED), "inputs_untouched"),
    ],
)
def test_a_sound_function_of_an_odd_tensor_is_not_accused(function, primal, values, law):
    spec = FunctionSpec(name="odd", function=function, primal=primal, wrt=("x",), cases=[values])
    (verdict,) = verify([spec], [one for one in LAWS if one.name == law]).of(law=law)

    assert verdict.status is Status.HOLDS, verdict.finding
