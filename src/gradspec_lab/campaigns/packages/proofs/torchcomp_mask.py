"""The gradient of a compressor in torchcomp is right; beside its output it returns a boolean mask, marked as such."""

import os

os.environ["NUMBA_THREADING_LAYER"] = "workqueue"
import torch
from differences import both, drawn, off
from torchcomp.core import CompressorFunction

x, state = drawn(2, 8).abs().detach().requires_grad_(), drawn(2, seed=1)
attack, release = (torch.tensor([v, v / 2], dtype=torch.float64, requires_grad=True) for v in (0.6, 0.2))
mask = CompressorFunction.apply(x, state, attack, release)[1]
pairs = both(lambda *given: CompressorFunction.apply(*given)[0], x, state, attack, release)
print(f"off by {', '.join(f'{off(*pair):.0e}' for pair in pairs)}; the mask: {mask.dtype}")
assert max(off(*pair) for pair in pairs) < 1e-6
