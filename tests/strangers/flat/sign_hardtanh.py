import torch
from torch import nn
from torch.autograd import Function


class SignHT(Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return torch.sign(input)

    @staticmethod
    def backward(ctx, grad_output):
        input, = ctx.saved_tensors
        grad_input = -grad_output
        return grad_input.masked_fill(input.abs() > 1, 0)


class BinaryActivation(nn.Module):
    def forward(self, x):
        return SignHT.apply(x)


function = SignHT.apply
wrt = ("input",)


def calls():
    g = torch.Generator().manual_seed(101)
    sign = torch.where(torch.rand(4, 3, generator=g) > 0.5, 1.0, -1.0).double()
    x = sign * (2 + 7 * torch.rand(4, 3, generator=g, dtype=torch.float64))
    return [((x,), {}), ((x.flatten(),), {})]


def primal(input):
    return torch.sign(input)


def surrogate(input):
    return input.clamp(-1, 1)


def show():
    x = torch.tensor([-0.5, 0.5], requires_grad=True)
    function(x).sum().backward()
    return x.grad.tolist() == [-1.0, -1.0]


TRUTH = {
    "sound": False,
    "defect": "Inside [-1, 1] the straight-through gradient has the wrong sign.",
    "rank": "wrong",
    "names": ["sign", "gradient of input", "factor -1", "-1", "opposite", "surrogate"],
    "first_law": "the gradient of input",
    "flat_everywhere": True,
}
