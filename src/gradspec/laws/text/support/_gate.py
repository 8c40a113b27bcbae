"""Functions that the laws put around the one under test: one hands a text on, the other may fail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gradspec.text import Function, Variable


class GateError(Exception):
    """The error of a closed gate."""


@dataclass
class Gate:
    """Whether feedback passes."""

    closed: bool = False


class Through(Function):
    """Hand a value on, and the feedback on it back."""

    @staticmethod
    def forward(ctx: Any, x: Variable) -> Variable:
        """Return an equal Variable."""
        return Variable(x.data, x.role)

    @staticmethod
    def backward(ctx: Any, grad_out: Variable | None) -> Variable | None:
        """Return the gradient as it is."""
        return grad_out


class Gated(Function):
    """Hand a value on, and the feedback on it back while a gate is open."""

    @staticmethod
    def forward(ctx: Any, x: Variable, gate: Gate) -> Variable:
        """Return an equal Variable."""
        ctx.gate = gate
        return Variable(x.data, x.role)

    @staticmethod
    def backward(ctx: Any, grad_out: Variable | None) -> tuple[Variable | None, None]:
        """Return the gradient as it is, or fail."""
        if ctx.gate.closed:
            raise GateError
        return grad_out, None
