import torch


class DitheredQuant(torch.autograd.Function):
    """Quantise with non-subtractive dither. The caller draws the dither, uniform in [0, 1), so that
    a run can be repeated; straight through in backward."""

    @staticmethod
    def forward(x, dither, step):
        return torch.floor(x / step + dither) * step

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None, None


def dithered_quant(x, dither, step=0.25):
    return DitheredQuant.apply(x, dither, step)


function = dithered_quant
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(116)
    x = torch.randn(2, 8, generator=g, dtype=torch.float64)
    u = torch.rand(2, 8, generator=g, dtype=torch.float64)
    return [((x, u), {}), ((x, u), {"step": 1.0})]


def primal(x, dither, step=0.25):
    return step * (x / step + dither).floor()


def surrogate(x, dither, step=0.25):
    return x.clone()


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
