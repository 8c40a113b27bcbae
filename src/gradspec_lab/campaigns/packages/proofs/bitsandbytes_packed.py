"""The CPU operators of bitsandbytes read packed weights as if they were contiguous; activations are right as they are.

The package makes the packed tensors itself, in one piece. Given every other element of a larger one, an operator reads
its neighbours.
"""

import bitsandbytes as bnb
import torch

torch.manual_seed(0)
layer = bnb.nn.Linear4bit(64, 64, compute_dtype=torch.float32, quant_type="nf4").to("cpu")
wide = torch.randn(2, 128)
for name, x in (("every other element", wide[:, ::2]), ("transposed", torch.randn(64, 2).T)):
    x = x.detach().requires_grad_()
    y, plain = layer(x), layer(x.detach().contiguous())
    given = torch.randn(2, 128)[:, ::2]
    (got,) = torch.autograd.grad(y, x, given)
    (right,) = torch.autograd.grad(layer(x), x, given.contiguous())
    print(
        f"activations, {name}: values apart by {(y - plain).abs().max():.0e}, "
        f"gradients by {(got - right).abs().max():.0e}"
    )
    assert torch.allclose(y, plain, atol=1e-5)
    assert torch.allclose(got, right, atol=1e-5)

packed, state = bnb.functional.quantize_blockwise(torch.randn(64))
apart = torch.stack((state.code, torch.zeros_like(state.code)), -1)[..., 0]
operator = torch.ops.bitsandbytes.dequantize_blockwise
right, other = (operator(packed, state.absmax, code, state.blocksize, torch.float32) for code in (state.code, apart))
print(f"a code book, every other element: {int((other != right).sum())} of 64 values differ, and the books are equal")
assert torch.equal(apart, state.code)
assert not torch.equal(other, right)
