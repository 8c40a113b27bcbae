import torch


class BinarizeSTE(torch.autograd.Function):
    """XNOR-Net style: sign forward, gradient of hardtanh backward."""

    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return torch.where(input >= 0, 1.0, -1.0).to(input.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        input, = ctx.saved_tensors
        return grad_output * (input.abs() <= 1).to(grad_output.dtype)


function = BinarizeSTE.apply
wrt = ("input",)


def calls():
    g = torch.Generator().manual_seed(2)
    a = torch.randn(4, 3, generator=g, dtype=torch.float64)
    b = 3 * torch.randn(2, 3, 4, generator=g, dtype=torch.float64)
    return [((a,), {}), ((b,), {})]


def primal(input):
    return torch.where(input >= 0, torch.ones_like(input), -torch.ones_like(input))


def surrogate(input):
    return input.clamp(-1, 1)


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
