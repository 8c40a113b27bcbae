import torch


class FiLM(torch.autograd.Function):
    # x: (N, C, L), gamma and beta: (C,)
    @staticmethod
    def forward(ctx, x, gamma, beta):
        ctx.save_for_backward(x, gamma)
        return x * gamma[:, None] + beta[:, None]

    @staticmethod
    def backward(ctx, grad):
        x, gamma = ctx.saved_tensors
        grad_x = grad * gamma[:, None]
        grad_gamma = torch.einsum("ncl,ncl->c", grad, x)
        grad_beta = grad.sum(2).mean(0)
        return grad_x, grad_gamma, grad_beta


def film(x, gamma, beta):
    return FiLM.apply(x, gamma, beta)


def primal(x, gamma, beta):
    return x * gamma.view(1, -1, 1) + beta.view(1, -1, 1)


surrogate = primal
FUNCTION = film
WRT = ("x", "gamma", "beta")


def _args(seed, n, c, length):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(n, c, length, generator=gen, dtype=torch.float64)
    return x, *(torch.randn(c, generator=gen, dtype=torch.float64) for _ in range(2))


CALLS = [lambda: _args(0, 3, 2, 4), lambda: _args(1, 1, 3, 2), lambda: _args(2, 5, 1, 1)]
LIMITS = ("vmap", "jvp")
DEFECT = "the gradient of beta is averaged over the batch where it has to be summed"
KEYWORDS = ("beta", "sum", "mean", "batch")
