import torch


class BilinearForm(torch.autograd.Function):
    """out[n, k] = x[n] W[k] y[n] (+ bias[k]); computes only the gradients that are asked for."""

    @staticmethod
    def forward(ctx, x, y, weight, bias):
        ctx.save_for_backward(x, y, weight)
        out = torch.einsum("ni,kij,nj->nk", x, weight, y)
        return out if bias is None else out + bias

    @staticmethod
    def backward(ctx, grad):
        x, y, weight = ctx.saved_tensors
        need_x, need_y, need_w, need_b = ctx.needs_input_grad
        g_x = torch.einsum("nk,kij,nj->ni", grad, weight, y) if need_x else None
        g_y = torch.einsum("nk,kij,ni->nj", grad, weight, x) if need_y else None
        g_w = torch.einsum("nk,ni,nj->kij", grad, x, y) if need_w else None
        return g_x, g_y, g_w, grad.sum(0) if need_b else None


def bilinear_form(x, y, weight, bias=None):
    return BilinearForm.apply(x, y, weight, bias)


function = bilinear_form
wrt = ("x", "y", "weight", "bias")


def calls():
    g = torch.Generator().manual_seed(362)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64)
    y = torch.randn(4, 2, generator=g, dtype=torch.float64)
    w = torch.randn(5, 3, 2, generator=g, dtype=torch.float64)
    b = torch.randn(5, generator=g, dtype=torch.float64)
    return [((x, y, w, b), {}), ((x, y, w), {})]


def primal(x, y, weight, bias=None):
    return torch.nn.functional.bilinear(x, y, weight, bias)


TRUTH = {"sound": True, "defect": "", "rank": "sound", "names": [], "first_law": ""}
