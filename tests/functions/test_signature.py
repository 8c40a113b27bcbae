"""torch binds each call of a Function to the signature of its forward: it is read from the code once."""

import inspect

import pytest

from gradspec.functions import FUNCTIONS


@pytest.mark.parametrize("spec", FUNCTIONS, ids=lambda spec: spec.name)
def test_that_the_signature_is_kept_and_is_that_of_the_code(spec, monkeypatch):
    forward = spec.autograd_function.forward
    kept = inspect.signature(forward)

    assert inspect.signature(forward) is kept
    monkeypatch.delattr(forward, "__signature__")
    assert inspect.signature(forward) is not kept
    assert inspect.signature(forward) == kept
