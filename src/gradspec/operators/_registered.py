"""The calls of `torch.library` that carry no types, typed here once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def register(
    name: str,
    schema: str,
    kernel: Callable[..., Any],
    *,
    fake: Callable[..., Any],
    backward: Callable[..., Any],
    setup_context: Callable[..., None],
    vmap: Callable[..., Any],
) -> Any:
    """Register an operator of the namespace `gradspec` for every device, and return it.

    Args:
        name: without the namespace.
        schema: its arguments and outputs, as `torch.library` writes them.
        kernel: what it computes, into memory of its own.
        fake: the same for tensors without values.
        backward: from ctx and the cotangents to the gradients.
        setup_context: keeps on ctx what backward needs.
        vmap: from the dimensions that are batched and the arguments to the outputs and their batched dimensions.
    """
    operator: Any = torch.library.custom_op(f"gradspec::{name}", kernel, mutates_args=(), schema=schema)
    operator.register_fake(fake)
    operator.register_autograd(backward, setup_context=setup_context)
    operator.register_vmap(vmap)
    return operator
