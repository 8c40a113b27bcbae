"""torch's own embedding, whose gradient is on purpose not the derivative: of its padding, and by the frequency."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class PlainEmbedding(TorchFunctionMode):
    """While it is entered, no embedding pads or scales by frequency: each is the derivative of its values."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation; an embedding without these two."""
        kwargs = dict(kwargs or {})
        if func is torch.nn.functional.embedding:
            given = dict(zip(_ARGUMENTS, args, strict=False)) | kwargs
            return func(**given | {"padding_idx": None, "scale_grad_by_freq": False})
        if func is torch.embedding and not kwargs:
            args = (*args[:2], -1, False, *args[4:])
        return func(*args, **kwargs)


#: The arguments of `torch.nn.functional.embedding`, in turn.
_ARGUMENTS = ("input", "weight", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse")
