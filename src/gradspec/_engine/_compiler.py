"""Import the compiler once: what takes seconds, each child has if it is forked afterwards."""

from __future__ import annotations

import importlib

from gradspec._process_state import unwarned
from gradspec._searches import no_search


def import_autograd() -> None:
    """Import what the first gradient of a process imports."""
    with no_search(), unwarned():
        importlib.import_module("torch.fx.experimental.symbolic_shapes")


def import_dynamo() -> None:
    """Import what the first calls in reverse and in forward mode import, and the first one of an operator in Python."""
    with no_search(), unwarned():
        import torch._dynamo

        import_autograd()
        with torch.autograd.forward_ad.dual_level():
            torch.autograd.forward_ad.make_dual(torch.ones(1), torch.ones(1))  # type: ignore[no-untyped-call]  # torch's own


def import_compiler() -> None:
    """Import all of torch's compiler that a first compilation imports piece by piece."""
    with no_search(), unwarned():
        import torch._dynamo
        import torch._inductor.pattern_matcher  # the backend `aot_eager` has it, with all lowerings behind it

        torch._dynamo.list_backends(exclude_tags=())  # the backends are found by importing them
