"""`Step` of sae-lens without a gradient of `x`: forward is a step in it, of which the derivative is 0, as None says.

The gradient of the threshold is that of a smoothed step, as the paper has it.
"""

import ast

# The class alone, without the package's __init__, which imports transformer_lens.
import importlib.util
from pathlib import Path

import torch
from differences import both, drawn, off

home = Path(importlib.util.find_spec("sae_lens").submodule_search_locations[0])
tree = ast.parse((home / "saes" / "jumprelu_sae.py").read_text())
wanted = [node for node in tree.body if getattr(node, "name", "") in ("rectangle", "Step", "JumpReLU")]
space = {"torch": torch, "Any": object}
exec(compile(ast.Module(wanted, []), "jumprelu_sae.py", "exec"), space)
Step, JumpReLU = space["Step"], space["JumpReLU"]

x, threshold = drawn(6, 8), (0.1 + 0 * drawn(8)).detach().requires_grad_()
(of_x, of_threshold) = both(lambda x, t: Step.apply(x, t, 0.5, False), x, threshold)
print(f"Step: x gets {of_x[0].norm():.3f}, central differences say {of_x[1].norm():.3f}")
assert of_x[0].norm() == 0
assert of_x[1].norm() == 0


def _smoothed(x, t, width):
    return ((x - t) / width + 0.5).clamp(0, 1)


def _smoothed_jump(x, t, width):
    return x.detach() * 0 + t.detach() * _smoothed(x.detach(), t, width) + x * (x > t)


for function, plain in ((Step, _smoothed), (JumpReLU, _smoothed_jump)):
    weights = torch.randn(6, 8, dtype=torch.float64)
    (got,) = torch.autograd.grad((weights * function.apply(x, threshold, 0.5, False)).sum(), threshold)
    (right,) = torch.autograd.grad((weights * plain(x, threshold, 0.5)).sum(), threshold)
    print(f"{function.__name__}: threshold gets that of a step smoothed over 0.5: off by {off(got, right):.0e}")
    assert off(got, right) < 1e-6
assert "False matches DeepMind's JumpReLU" in (home / "saes" / "jumprelu_sae.py").read_text()
