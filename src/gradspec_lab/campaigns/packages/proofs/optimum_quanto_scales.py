"""The quantizers of optimum-quanto hand the gradient on as it is, and none to a scale, as their comments say."""

import torch
from optimum.quanto import qint4, qint8, quantize
from optimum.quanto.tensor.activations.qbytes import ActivationQBytesQuantizer
from optimum.quanto.tensor.function import QuantizedLinearFunction
from optimum.quanto.tensor.weights.qbits import WeightsQBitsQuantizer
from optimum.quanto.tensor.weights.qbytes import WeightQBytesQuantizer

torch.manual_seed(0)
said = " ".join(QuantizedLinearFunction.__doc__.split())
assert "the extra tensors involved in the quantization graph, such as the scales and shift, cannot be trained" in said
assert "consistent with the quanto quantizers backward pass" in said
x = torch.randn(8, 128, requires_grad=True)
scale, shift = torch.full((8, 1), 0.02, requires_grad=True), torch.full((8, 1), 0.1, requires_grad=True)
one = torch.tensor(0.02, requires_grad=True)
for name, y, extra in (
    ("8 bits", WeightQBytesQuantizer.apply(x, qint8, 0, scale, None, False), (scale,)),
    ("4 bits", WeightsQBitsQuantizer.apply(x, qint4, 0, 128, scale, shift, False), (scale, shift)),
    ("activations", ActivationQBytesQuantizer.apply(x, qint8, one), (one,)),
):
    cotangent = torch.randn(8, 128)
    got, *nothing = torch.autograd.grad(y, (x, *extra), cotangent, allow_unused=True)
    print(
        f"{name}: straight through, off by {float((got - cotangent).abs().max()):.0e}; of {len(extra)} more: {nothing}"
    )
    assert torch.equal(got, cotangent)
    assert nothing == [None] * len(extra)
for weights in (qint8, qint4):
    model = torch.nn.Sequential(torch.nn.Linear(128, 8))
    quantize(model, weights=weights)
    relevance = torch.randn(8, 8)
    (got,) = torch.autograd.grad((relevance * model(x.detach())).sum(), model[0].weight)
    print(
        f"{weights}: a layer's gradient is off that of its float layer by "
        f"{float((got - relevance.T @ x).norm() / got.norm()):.0e}"
    )
    assert torch.allclose(got, relevance.T @ x, rtol=1e-3, atol=1e-3)
