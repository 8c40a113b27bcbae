"""The base class of what has parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from gradspec.text.textgrad.variable import Variable


class Module(ABC):
    """Something that is called, and has Variables that can be learned.

    Example:
        >>> class Echo(Module):
        ...     def forward(self, x):
        ...         return x
        >>> Echo()("again")
        'again'
    """

    def parameters(self) -> list[Variable]:
        """Return the Variables that can be learned; none unless overridden."""
        return []

    def zero_grad(self) -> None:
        """Forget what was said of the parameters."""
        for parameter in self.parameters():
            parameter.reset_gradients()

    @abstractmethod
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result; to be overridden."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what `forward` returns."""
        return self.forward(*args, **kwargs)
