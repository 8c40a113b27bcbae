import torch


class GatedAffine(torch.autograd.Function):
    """sigmoid(x @ gate.T) * (x @ weight.T + bias) for x (N, in); bias is optional."""

    @staticmethod
    def forward(ctx, x, weight, gate, bias=None):
        s = torch.sigmoid(x @ gate.T)
        lin = x @ weight.T
        if bias is not None:
            lin = lin + bias
        ctx.save_for_backward(x, weight, gate, bias)
        return s * lin

    @staticmethod
    def backward(ctx, grad):
        x, weight, gate, bias = ctx.saved_tensors
        s = torch.sigmoid(x @ gate.T)
        lin = x @ weight.T
        if bias is not None:
            lin = lin + bias
        g_lin = grad * s
        g_pre = grad * lin * s * (1 - s)
        g_x = g_lin @ weight + g_pre @ gate
        if bias is None:
            return g_x, g_lin.T @ x, g_pre.T @ x
        return g_x, g_lin.T @ x, g_pre.T @ x, g_lin.sum(0)


def gated_affine(x, weight, gate, bias=None):
    return GatedAffine.apply(x, weight, gate, bias)


function = gated_affine
wrt = ("x", "weight", "gate", "bias")


def calls():
    g = torch.Generator().manual_seed(335)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64)
    w, v = torch.randn(2, 2, 3, generator=g, dtype=torch.float64)
    b = torch.randn(2, generator=g, dtype=torch.float64)
    return [((x, w, v, b), {}), ((x, w, v), {})]


def primal(x, weight, gate, bias=None):
    lin = torch.nn.functional.linear(x, weight, bias)
    return lin / (1 + torch.exp(-torch.nn.functional.linear(x, gate)))


def show():
    (full, _), (bare, _) = calls()
    full[0].requires_grad_()
    function(*full).sum().backward()
    bare[0].requires_grad_()
    try:
        function(*bare).sum().backward()
    except RuntimeError as e:
        return "number of gradients" in str(e)
    return False


TRUTH = {
    "sound": False,
    "defect": "Without bias backward returns three gradients for the four arguments of apply: autograd raises.",
    "rank": "refused",
    "names": ["number of gradients", "bias", "None", "raises", "RuntimeError", "incorrect number"],
    "first_law": "the gradient without bias",
}
