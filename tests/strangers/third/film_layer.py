import torch


class FiLMFunction(torch.autograd.Function):
    """gamma[b, c] * x[b, c, t] + beta[b, c]."""

    @staticmethod
    def forward(ctx, x, gamma, beta):
        ctx.save_for_backward(x, gamma)
        return gamma.unsqueeze(-1) * x + beta.unsqueeze(-1)

    @staticmethod
    def backward(ctx, grad_output):
        x, gamma = ctx.saved_tensors
        grad_x = grad_gamma = grad_beta = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_output * gamma.unsqueeze(-1)
            grad_gamma = (grad_output * x).sum(-1)
        if ctx.needs_input_grad[2]:
            grad_beta = grad_output.sum(-1)
        return grad_x, grad_gamma, grad_beta


def film_layer(x, gamma, beta):
    return FiLMFunction.apply(x, gamma, beta)


function = film_layer
wrt = ("x", "gamma", "beta")


def calls():
    g = torch.Generator().manual_seed(314)
    x = torch.randn(2, 3, 5, generator=g, dtype=torch.float64)
    s, b = torch.randn(2, 2, 3, generator=g, dtype=torch.float64)
    return [((x, s, b), {})]


def primal(x, gamma, beta):
    return torch.einsum("bct,bc->bct", x, gamma) + beta[..., None]


def show():
    (x, s, b), _ = calls()[0]
    s.requires_grad_()
    y = function(x, s, b)
    (alone,) = torch.autograd.grad(y.sum(), s, allow_unused=True)
    x.requires_grad_()
    (both,) = torch.autograd.grad(function(x, s, b).sum(), s)
    return alone is None and torch.allclose(both, x.sum(-1))


TRUTH = {
    "sound": False,
    "defect": "The gradient of gamma is computed only if x needs one: with x frozen (the first layer, data) gamma gets "
    "None and is never trained.",
    "rank": "wrong",
    "names": ["gamma", "needs_input_grad", "None", "frozen", "alone", "no gradient"],
    "first_law": "the gradient of gamma alone",
}
