import torch


class ComplexMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, w):
        ctx.save_for_backward(z, w)
        return z * w

    @staticmethod
    def backward(ctx, grad):
        z, w = ctx.saved_tensors
        gz = gw = None
        if ctx.needs_input_grad[0]:
            gz = grad * w.conj()
        if ctx.needs_input_grad[1]:
            gw = grad * z.conj()
        return gz, gw


function = ComplexMul.apply
wrt = ("z", "w")


def calls():
    g = torch.Generator().manual_seed(10)
    z, w = torch.randn(2, 4, 3, generator=g, dtype=torch.complex128)
    a, b = torch.randn(2, 5, generator=g, dtype=torch.complex128)
    return [((z, w), {}), ((a, b), {})]


def primal(z, w):
    return z * w


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
