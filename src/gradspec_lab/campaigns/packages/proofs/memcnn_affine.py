"""`AffineCoupling` of memcnn by its second implementation, beside the plain computation of the same values."""

import torch
from differences import both, drawn, off
from memcnn.models.affine import AffineAdapterNaive, AffineCoupling


def _coupling(implementation):
    torch.manual_seed(0)
    blocks = [torch.nn.Sequential(torch.nn.Conv2d(2, 2, 3, padding=1), torch.nn.Tanh()) for _ in range(2)]
    options = {"implementation_fwd": implementation, "implementation_bwd": implementation}
    return AffineCoupling(*blocks, adapter=AffineAdapterNaive, **options).double()


x = drawn(1, 4, 3, 3)
plain = _coupling(-1)
results, found = plain(x), {}
for implementation in (-1, 0, 1):
    coupling = _coupling(implementation)
    assert torch.allclose(coupling(x.clone()), results)
    ((got, expected),) = both(lambda x, c=coupling: c(x * 1), x)
    weights, right = (torch.autograd.grad(c(x * 1).square().sum(), list(c.parameters())) for c in (coupling, plain))
    of_weights = max(off(*pair) for pair in zip(weights, right, strict=True))
    found[implementation] = off(got, expected), of_weights
    print(f"implementation {implementation}: x off by {off(got, expected):.1e}, the weights by {of_weights:.1e}")
assert max(max(found[-1]), max(found[0]), found[1][1]) < 1e-6
assert found[1][0] > 0.1

# The second half of x goes through y2 = s2 x2 + t2, and its gradient lacks the factor s2 there.
coupling = _coupling(1)
((got, expected),) = both(lambda x: coupling(x * 1), x)
wrong = (got - expected).abs().flatten(2).amax((0, 2)) > 1e-6
print(f"the wrong channels: {wrong.nonzero().flatten().tolist()} of {x.shape[1]}")
assert wrong.tolist() == [False, False, True, True]
