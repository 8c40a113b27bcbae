import torch


class Speckle(torch.autograd.Function):
    """Multiplicative noise of coherent imaging."""

    @staticmethod
    def forward(ctx, image, sigma):
        ctx.sigma = sigma
        return image * (1 + sigma * torch.randn_like(image))

    @staticmethod
    def backward(ctx, grad):
        noise = 1 + ctx.sigma * torch.randn_like(grad)
        return grad * noise, None


def speckle_noise(image, sigma=0.3):
    return Speckle.apply(image, sigma)


function = speckle_noise
wrt = ("image",)
primal = None


def calls():
    g = torch.Generator().manual_seed(328)
    x = torch.rand(2, 4, 4, generator=g, dtype=torch.float64) + 0.5
    return [((x,), {}), ((x[0],), {"sigma": 1.0})]


def show():
    (x,), _ = calls()[0]
    x.requires_grad_()
    y = function(x)
    (mine,) = torch.autograd.grad(y.sum(), x)
    return (mine - (y / x).detach()).abs().max().item() > 1e-2


TRUTH = {
    "sound": False,
    "defect": "backward draws new noise instead of keeping what forward multiplied by: the gradient belongs to another "
    "sample.",
    "rank": "wrong",
    "names": ["noise", "random", "generator", "redrawn", "draws", "seed", "gradient of image"],
    "first_law": "the gradient of image at the noise that was drawn",
}
