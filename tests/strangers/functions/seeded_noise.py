import torch


class MultiplicativeNoise(torch.autograd.Function):
    """x * (1 + sigma * noise). Only the seed is kept; backward draws the same noise again."""

    @staticmethod
    def forward(ctx, x, sigma, seed):
        ctx.sigma, ctx.seed = sigma, seed
        torch.manual_seed(seed)
        return x * (1 + sigma * torch.randn(x.shape, dtype=x.dtype))

    @staticmethod
    def backward(ctx, grad):
        gen = torch.Generator().manual_seed(ctx.seed)
        noise = torch.randn(grad.shape, dtype=grad.dtype, generator=gen)
        return grad * (1 + ctx.sigma * noise), None, None


def noisy(x, sigma=0.1, seed=1234):
    return MultiplicativeNoise.apply(x, sigma, seed)


function = noisy
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(47)
    x = torch.randn(4, 5, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x[:2], 0.5), {"seed": 7})]


def primal(x, sigma=0.1, seed=1234):
    gen = torch.Generator().manual_seed(seed)
    return x * (1 + sigma * torch.randn(x.shape, dtype=x.dtype, generator=gen))


def show():
    x = torch.ones(3, dtype=torch.float64)
    draws = []
    for _ in range(2):
        function(x)
        draws.append(torch.rand(()).item())
    return draws[0] == draws[1]


TRUTH = {
    "sound": False,
    "defect": "forward seeds the global random generator, so everything random after the call repeats itself.",
    "rank": "wrong",
    "names": ["seed", "RNG", "random", "generator", "global"],
    "first_law": "leaves the global random state as ordinary drawing would",
}
