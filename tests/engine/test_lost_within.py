"""A function that is handed a module and runs it again in backward: its parameters get a gradient too."""

import pytest
import torch
from torch import nn
from torch.autograd import Function

from gradspec import Status, audit, check
from gradspec.laws import LAWS

CHOSEN = [law for law in LAWS if law.name in ("surrogate", "declared_writes")]


class Loses(Function):
    """Runs a block again, and gives the gradient of its input only."""

    @staticmethod
    def forward(ctx, block, x):
        ctx.block = block
        ctx.save_for_backward(x)
        return block(x)

    @classmethod
    def backward(cls, ctx, y_bar):
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            y = ctx.block(x)
        return None, cls.given(x, y, y_bar)

    @staticmethod
    def given(x, y, y_bar):
        return torch.autograd.grad(y, x, y_bar)[0]


class Adds(Loses):
    """Adds to the gradients of the block, as torch's own reentrant checkpoint does."""

    @staticmethod
    def given(x, y, y_bar):
        torch.autograd.backward(y, y_bar)
        return x.grad


def block(*, trained: bool = True) -> nn.Module:
    return nn.Linear(3, 2, bias=False).double().requires_grad_(trained)


class Reads(Loses):
    """Multiplies by a weight that is not trained here."""

    @staticmethod
    def forward(ctx, block, x):
        ctx.save_for_backward(block.weight.detach())
        return x @ block.weight.detach().T

    @staticmethod
    def backward(ctx, y_bar):
        return None, y_bar @ ctx.saved_tensors[0]


X = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize(
    ("function", "trained", "status"),
    [
        (Loses, True, Status.BROKEN),
        (Loses, False, Status.HOLDS),
        (Adds, True, Status.HOLDS),
        (Reads, True, Status.HOLDS),
    ],
)
def test_a_parameter_that_gets_no_gradient_is_lost(function, trained, status):
    made = block(trained=trained)
    verdicts = {v.law: v for v in audit(function, [(made, X)], laws=CHOSEN).report.verdicts}

    assert (verdicts["surrogate"].status, verdicts["declared_writes"].status) == (status, Status.HOLDS)
    if status is Status.BROKEN:
        said = "no gradient reaches `block.weight`, and the output moves with it"
        assert verdicts["surrogate"].finding.message == said
    for references in ({}, {"primal": lambda block, x: block(x)}):
        is_right = check(function, (made, X), raise_exception=False, **references)
        assert is_right is (status is Status.HOLDS)


def test_the_gradients_and_the_numbers_of_the_module_stay():
    made = block()
    made.weight.grad, kept = torch.ones(2, 3, dtype=torch.float64), made.weight.detach().clone()
    check(Loses, (made, X), raise_exception=False)

    assert torch.equal(made.weight, kept)
    assert torch.equal(made.weight.grad, torch.ones_like(kept))


class Holds(nn.Module):
    """A layer that runs its own block again in backward."""

    def __init__(self, function):
        super().__init__()
        self.block, self.function = block(), function

    def forward(self, x):
        return self.function.apply(self.block, x)


@pytest.mark.parametrize(("function", "is_right"), [(Loses, False), (Adds, True)])
def test_a_layer_whose_block_runs_again_loses_nothing_that_is_added_to_its_gradients(function, is_right):
    assert check(Holds(function), (X,), raise_exception=False) is is_right

    (verdict,) = audit(Holds(function), [(X,)], laws=CHOSEN[1:]).report.verdicts
    assert verdict.status is (Status.HOLDS if is_right else Status.BROKEN)
