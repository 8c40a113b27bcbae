import torch


class WindowQuant(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, step, n_bits):
        q = torch.clamp(torch.round(x / step), 0, 2**n_bits - 1)
        ctx.save_for_backward(q)
        ctx.qmax = 2**n_bits - 1
        return q * step

    @staticmethod
    def backward(ctx, grad_output):
        (q,) = ctx.saved_tensors
        window = (q > 0) & (q < ctx.qmax)
        return grad_output * window.to(grad_output.dtype), None, None


def quantize_act(x, step=1.0, n_bits=1):
    return WindowQuant.apply(x, step, n_bits)


function = quantize_act
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(104)
    x = 2 + 7 * torch.rand(4, 3, generator=g, dtype=torch.float64)
    return [((x,), {}), ((-x,), {}), ((x,), {"step": 1.5})]


def primal(x, step=1.0, n_bits=1):
    return torch.clamp(torch.round(x / step), 0, 2**n_bits - 1) * step


def surrogate(x, step=1.0, n_bits=1):
    return torch.clamp(x / step, 0, 2**n_bits - 1) * step


def show():
    x = torch.linspace(0.05, 0.95, 10, requires_grad=True)
    function(x).sum().backward()
    return not x.grad.any()


TRUTH = {
    "sound": False,
    "defect": "The window is strict in the rounded value, and with one bit no value lies strictly between 0 and 1: the gradient is zero everywhere.",
    "rank": "wrong",
    "names": ["zero", "gradient of x", "flat", "dead", "window", "surrogate"],
    "first_law": "the gradient of x",
    "flat_everywhere": True,
}
