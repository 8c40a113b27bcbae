"""Text autodiff: gradients that are feedback in words. Imports no torch."""

__all__: list[str] = []
