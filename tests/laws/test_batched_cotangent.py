"""The law batched_cotangent: what a backward does to `.data` of a batched cotangent, which has no memory."""

import pytest
import torch
from torch.autograd import Function

from gradspec import Case, FunctionSpec, Supports, verify
from gradspec.law import Status
from gradspec.laws import LAWS

NAMED = {law.name: law for law in LAWS}


def found(gradient):
    """Return what the law finds of twice its argument, whose gradient is computed so from the cotangent."""

    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, y_bar):
            return gradient(y_bar)

    spec = FunctionSpec(
        name="twice",
        function=Twice.apply,
        primal=lambda x: 2 * x,
        surrogate=lambda x: 2 * x,
        wrt=("x",),
        cases=lambda make: [Case(name="a vector", args=(make(4),))],
        supports=Supports.all(),
    )
    report = verify([spec], [NAMED["batched_cotangent"]], isolate=False)
    (verdict,) = (v for v in report.verdicts if v.law == "batched_cotangent")
    return verdict.finding


@pytest.mark.parametrize(
    ("gradient", "operation"),
    [
        (lambda g: 2 * g.data, "mul"),
        (lambda g: g.data.mul_(2), "mul_"),
        (lambda g: torch.from_numpy(2 * g.data.numpy()), "numpy"),
        (lambda g: torch.tensor(g.data.tolist()), "tolist"),
        # What torch makes of the sum, in a batch, begins so.
        (lambda g: g + torch.nn.functional.linear(g, torch.eye(4, dtype=g.dtype)).data, "view"),
    ],
)
def test_an_operation_on_data_is_named_with_its_line(gradient, operation):
    finding = found(gradient)
    assert finding.status is Status.BROKEN
    assert finding.message == "backward reads `.data` of a batched cotangent, which has no memory"
    assert finding.details["operation"] == operation
    assert str(finding.details["line"]).startswith("test_batched_cotangent.py:")


@pytest.mark.parametrize(
    "gradient",
    [
        lambda g: 2 * g.view(g.data.shape),
        lambda g: 2 * g * torch.ones(g.data.size(0), dtype=g.data.dtype).data,
    ],
)
def test_shape_dtype_and_data_of_other_tensors_can_be_read(gradient):
    assert found(gradient).status is Status.HOLDS


def test_the_attribute_of_torch_is_back_after_it():
    found(lambda g: 2 * g.data)
    assert "data" not in vars(torch.Tensor)
    x = torch.zeros(2)
    x.data = torch.ones(2)
    assert torch.ones(2).data.sum() == x.sum() == 2
