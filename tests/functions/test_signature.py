"""torch binds each call of a Function to the signature of its forward: it is read from the code once."""

import inspect
from functools import partial

import pytest
import torch
from torch.autograd import Function

from gradspec.functions import FUNCTIONS, GradFactor, GradMultiply


@pytest.mark.parametrize("spec", FUNCTIONS, ids=lambda spec: spec.name)
def test_that_the_signature_is_kept_and_is_that_of_the_code(spec, monkeypatch):
    forward = spec.autograd_function.forward
    kept = inspect.signature(forward)

    assert inspect.signature(forward) is kept
    monkeypatch.delattr(forward, "__signature__")
    assert inspect.signature(forward) is not kept
    assert inspect.signature(forward) == kept


class InC:
    """Binds as torch's `apply` does from 2.14 on: to what has no `__func__`."""

    def __init__(self, apply):
        self.apply = apply

    def __get__(self, instance, cls):
        return partial(self.apply.__get__(None, cls))


@pytest.mark.parametrize("function", [GradFactor, GradMultiply])
def test_that_a_transform_calls_an_apply_that_is_written_in_c(function, monkeypatch):
    monkeypatch.setattr(Function, "apply", InC(Function.__dict__["apply"]))

    gradient = torch.func.grad(lambda x: function.apply(x, 3.0).sum())(torch.ones(2))

    assert gradient.tolist() == [3, 3]
