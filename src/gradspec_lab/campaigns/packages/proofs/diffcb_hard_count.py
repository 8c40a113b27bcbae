"""The bandwidth of diffcb is that of a count of modes in whole numbers, and its gradient that of a soft one."""

import warnings

import torch

from gradspec_lab.campaigns.packages.absent import absent

absent("matplotlib")
DCBLayer = __import__("dcb").DCBLayer
warnings.simplefilter("ignore")


def off(layer, x):
    """Return how far the gradient is from central differences, and the cosine between them."""
    moving = x.clone().requires_grad_()
    (got,) = torch.autograd.grad(layer(moving), moving)
    expected = torch.zeros_like(x)
    for place in range(len(x)):
        step = torch.zeros_like(x)
        step[place] = 1e-3
        expected[place] = (layer(x + step) - layer(x - step)).item() / 2e-3
    cosine = torch.nn.functional.cosine_similarity(got, expected, dim=0).item()
    return ((got - expected).norm() / expected.norm()).item(), cosine


def two_humps(seed):
    """Return numbers with two modes."""
    torch.manual_seed(seed)
    return torch.cat([torch.randn(20) - 2, torch.randn(20) + 2]).double()


def of_a_decay(seed):
    """Return numbers from an exponential distribution."""
    torch.manual_seed(seed)
    return torch.rand(40).log().neg().double()


for name, layer, x in (
    ("as it comes, 512 points", DCBLayer(), two_humps(0)),
    ("as it comes, on another sample", DCBLayer(), of_a_decay(2)),
    ("as it comes, 128 points", DCBLayer(G=128), two_humps(0)),
):
    far, cosine = off(layer, x)
    print(f"{name}: off by {far:.3f}, cosine {cosine:.4f}")
    assert 0.02 < far < 0.15
    assert cosine > 0.99
far, cosine = off(DCBLayer(use_hard_bisection=False, g_brentq=512), two_humps(0))
print(f"the soft count in forward, too, on the same points: off by {far:.4f}")
assert far < 0.005
far, cosine = off(DCBLayer(use_hard_bisection=False, G=4096), two_humps(1))
print(f"the soft count on the 128 points of g_brentq, its gradient on 4096: off by {far:.2f}, cosine {cosine:.2f}")
assert far > 0.5

torch.manual_seed(0)  # The check that the README says passes with default settings.
given = torch.randn(200, dtype=torch.float64, requires_grad=True)
passes = torch.autograd.gradcheck(DCBLayer(forward_path="smooth"), (given,), eps=1e-5, atol=1e-4, raise_exception=False)
print(f"gradcheck as in the README: {passes}")
assert not passes
