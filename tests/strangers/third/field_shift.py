import torch


class FieldShift(torch.autograd.Function):
    """Brings the zero frequency of an optical field to the middle, over the last two axes."""

    @staticmethod
    def forward(ctx, field):
        return torch.roll(field, (field.shape[-2] // 2, field.shape[-1] // 2), (-2, -1))

    @staticmethod
    def backward(ctx, grad):
        return torch.roll(grad, (grad.shape[-2] // 2, grad.shape[-1] // 2), (-2, -1))


function = FieldShift.apply
wrt = ("field",)


def calls():
    g = torch.Generator().manual_seed(320)
    even = torch.randn(2, 4, 6, generator=g, dtype=torch.complex128)
    odd = torch.randn(3, 5, generator=g, dtype=torch.float64)
    return [((even,), {}), ((odd,), {})]


def primal(field):
    return torch.fft.fftshift(field, dim=(-2, -1))


def show():
    off = []
    for (x,), _ in calls():
        x.requires_grad_()
        v = torch.arange(x.numel()).to(x.dtype).reshape(x.shape)
        (mine,) = torch.autograd.grad(function(x), x, v)
        (true,) = torch.autograd.grad(primal(x), x, v)
        off.append((mine - true).abs().max().item())
    return off[0] == 0 and off[1] > 0.5


TRUTH = {
    "sound": False,
    "defect": "backward shifts by n // 2 once more instead of back: the same for even sizes, one or two places off for "
    "odd ones.",
    "rank": "wrong",
    "names": ["odd", "shift", "roll", "gradient of field", "transpose", "off by one"],
    "first_law": "the gradient of field",
}
