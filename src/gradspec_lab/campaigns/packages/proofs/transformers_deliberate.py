"""Gradients of transformers that are no derivatives, as they say: clipped, straight through, of a sparse mixture."""

import torch
from differences import drawn, off
from transformers.integrations.bitnet import WeightQuant
from transformers.loss.loss_lsd import _InputOnlyGrad
from transformers.models.phimoe.modeling_phimoe import PhimoeMultiplier, sparsemixer
from transformers.models.recurrent_gemma.modeling_recurrent_gemma import SqrtBoundDerivative

x = torch.tensor([0.0, 1e-8, 0.5], dtype=torch.float64, requires_grad=True)
(got,) = torch.autograd.grad(SqrtBoundDerivative.apply(x).sum(), x)
(right,) = torch.autograd.grad(x.sqrt().sum(), x)
print(f"SqrtBoundDerivative: {got.tolist()}, of sqrt {right.tolist()}")
assert torch.equal(got, right.clamp(max=1000))
assert "gradient clipped" in SqrtBoundDerivative.__doc__

scores, multiplier, cotangent = drawn(4, 6), drawn(4, 1, seed=1), drawn(4, 1, seed=2).detach()
gates, chosen = scores.softmax(-1).detach(), torch.tensor([[0], [3], [5], [1]])
got = torch.autograd.grad(
    PhimoeMultiplier.apply(scores, multiplier, chosen, gates, torch.ones(4, 1)),
    (scores, multiplier),
    cotangent,
    allow_unused=True,
)
# That is the gradient of the gate that is chosen, whose value the multiplier is in the mixer.
(right,) = torch.autograd.grad(
    scores.softmax(-1).gather(1, chosen), scores, cotangent * multiplier / gates.gather(1, chosen)
)
print(f"PhimoeMultiplier: the multiplier gets {got[1]}; the scores that of a gate, off by {off(got[0], right):.0e}")
assert got[1] is None
assert off(got[0], right) < 1e-6
assert "a modified back-propagation" in " ".join(sparsemixer.__doc__.split())

weight = torch.randn(4, 5, requires_grad=True)
(got,) = torch.autograd.grad(WeightQuant.apply(weight), weight, torch.arange(20.0).view(4, 5))
assert torch.equal(got, torch.arange(20.0).view(4, 5))
assert "uses the Straight-Through Estimator" in " ".join(WeightQuant.__doc__.split())
print("WeightQuant: straight through, as it says")

inputs = drawn(3, 4)
output = _InputOnlyGrad.apply(inputs, torch.sin)
(got,) = torch.autograd.grad(output.sum(), inputs, retain_graph=True)
assert off(got, inputs.cos()) < 1e-9
try:
    torch.autograd.grad(output.sum(), inputs)
except RuntimeError as error:
    print(f"_InputOnlyGrad: right once; a second backward pass raises {str(error)[:60]}")
else:
    raise AssertionError("it did not refuse")
