import torch


class ReflectPad1d(torch.autograd.Function):
    """Mirror a signal (..., L) at both ends without repeating the border, as before an STFT."""

    @staticmethod
    def forward(x, pad):
        head = x[..., 1 : pad + 1].flip(-1)
        tail = x[..., -pad - 1 : -1].flip(-1) if pad else x[..., :0]
        return torch.cat([head, x, tail], -1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.pad = inputs
        ctx.length = x.shape[-1]

    @staticmethod
    def backward(ctx, grad):
        return grad.narrow(-1, ctx.pad, ctx.length), None


def reflect_pad(x, pad=2):
    return ReflectPad1d.apply(x, pad)


function = reflect_pad
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(153)
    x = torch.randn(2, 3, 8, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x[0],), {"pad": 5}), ((x,), {"pad": 0})]


def primal(x, pad=2):
    flat = x.reshape(-1, x.shape[-1])
    out = torch.nn.functional.pad(flat, (pad, pad), mode="reflect")
    return out.reshape(x.shape[:-1] + (-1,))


def show():
    (x,), _ = calls()[0]
    x.requires_grad_()
    (mine,) = torch.autograd.grad(function(x).sum(), x)
    (true,) = torch.autograd.grad(primal(x).sum(), x)
    return bool((mine == 1).all()) and true.max() == 2


TRUTH = {
    "sound": False,
    "defect": "The gradient leaves out what arrives through the padding: reflected samples count once in place of "
    "twice.",
    "rank": "wrong",
    "names": ["padding", "reflected", "border", "gradient of x"],
    "first_law": "the gradient of x",
}
