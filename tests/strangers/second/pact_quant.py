import torch


class PACTQuant(torch.autograd.Function):
    """PACT (Choi et al. 2018): clip to [0, alpha], quantise to `bits` bits.

    Straight through inside the clipping range; alpha collects the gradient of what is clipped.
    """

    @staticmethod
    def forward(ctx, x, alpha, bits):
        n = 2**bits - 1
        y = torch.minimum(x.clamp(min=0), alpha)
        out = torch.round(y * n / alpha) * alpha / n
        ctx.save_for_backward(x, alpha, out)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        x, alpha, out = ctx.saved_tensors
        inside = (out > 0) & (out < alpha)
        grad_alpha = (grad_output * (x >= alpha)).sum().reshape(alpha.shape)
        return grad_output * inside, grad_alpha, None


def pact_quant(x, alpha, bits=2):
    return PACTQuant.apply(x, alpha, bits)


function = pact_quant
wrt = ("x", "alpha")


def calls():
    g = torch.Generator().manual_seed(133)
    x = 2 * torch.randn(4, 6, generator=g, dtype=torch.float64)
    y = torch.rand(3, 2, 4, generator=g, dtype=torch.float64)
    alpha = torch.tensor([1.5], dtype=torch.float64)
    return [((x, alpha), {}), ((y, alpha), {"bits": 3})]


def primal(x, alpha, bits=2):
    n = 2**bits - 1
    return (torch.relu(x).minimum(alpha) * n / alpha).round() * alpha / n


def surrogate(x, alpha, bits=2):
    return torch.minimum(torch.relu(x), alpha)


def show():
    (x, alpha), _ = calls()[0]
    x.requires_grad_()
    (mine,) = torch.autograd.grad(function(x, alpha).sum(), x)
    lost = (x > 0) & (x < alpha) & (mine == 0)
    return bool(lost.any())


TRUTH = {
    "sound": False,
    "defect": "The clipping mask is taken from the quantised output, so inputs that round to 0 or alpha get no "
    "gradient although they are inside the range.",
    "rank": "wrong",
    "names": ["mask", "gradient of x", "quantised output", "range", "rounds to zero"],
    "first_law": "the gradient of x",
}
