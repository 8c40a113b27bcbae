import torch


class TPDFDither(torch.autograd.Function):
    """Rounds audio to steps after adding triangular noise; backward passes the gradient as the mean value does."""

    @staticmethod
    def forward(ctx, x, step):
        noise = torch.rand_like(x) - torch.rand_like(x)
        return step * torch.round(x / step + noise)

    @staticmethod
    def backward(ctx, grad):
        return grad, None


def tpdf_dither(x, step=2**-4):
    return TPDFDither.apply(x, step)


function = tpdf_dither
wrt = ("x",)
primal = None


def surrogate(x, step=2**-4):
    """What is expected of the noise."""
    return x.clone()


def calls():
    g = torch.Generator().manual_seed(355)
    x = torch.randn(2, 7, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x[0],), {"step": 0.5})]


def check():
    x = torch.tensor([0.3, -0.71, 0.02], dtype=torch.float64)
    y = torch.stack([function(x, 0.5) for _ in range(4000)])
    return bool(((y.mean(0) - x).abs() < 0.03).all() and (y / 0.5 == (y / 0.5).round()).all())


TRUTH = {"sound": True, "defect": "", "rank": "sound", "names": [], "first_law": ""}
