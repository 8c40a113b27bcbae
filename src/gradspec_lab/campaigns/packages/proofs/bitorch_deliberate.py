"""`SteHeaviside` of bitorch prints in every backward pass; `ProgressiveSign` is straight-through, as it documents."""

import contextlib
import io
from importlib import import_module

import torch

from gradspec_lab.campaigns.packages.absent import absent

absent("pandas")
_progressive = import_module("bitorch.quantizations.progressive_sign")
_heaviside = import_module("bitorch.quantizations.ste_heaviside")

x = torch.tensor([-1.5, 0.5, 2.0], requires_grad=True)
with contextlib.redirect_stdout(io.StringIO()) as said:
    (got,) = torch.autograd.grad(_heaviside.SteHeavisideFunction.apply(x).sum(), x)
print(f"SteHeaviside printed {said.getvalue().strip()!r}; its gradient is {got.tolist()}")
assert "over threshold" in said.getvalue()
(got,) = torch.autograd.grad(_progressive.ProgressiveSignFunctionTrain.apply(x, 0.5).sum(), x)
print(f"ProgressiveSign: {got.tolist()}")
assert torch.equal(got, torch.ones(3))
assert "with STE during training" in " ".join(_progressive.ProgressiveSign.__doc__.split())
