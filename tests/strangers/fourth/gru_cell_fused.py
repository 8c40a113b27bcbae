# GRU cell with a hand-written backward (keeps only the inputs, recomputes the gates).
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def _gates(x, h, w_ih, w_hh, bias):
    gi = x.mm(w_ih.t()) + bias
    gh = h.mm(w_hh.t())
    i_r, i_z, i_n = gi.chunk(3, 1)
    h_r, h_z, h_n = gh.chunk(3, 1)
    r = torch.sigmoid(i_r + h_r)
    z = torch.sigmoid(i_z + h_z)
    n = torch.tanh(i_n + r * h_n)
    return r, z, n, h_n


class GRUCellFunction(Function):
    @staticmethod
    def forward(ctx, x, h, w_ih, w_hh, bias):
        _, z, n, _ = _gates(x, h, w_ih, w_hh, bias)
        ctx.save_for_backward(x, h, w_ih, w_hh, bias)
        return n + z * (h - n)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_h):
        x, h, w_ih, w_hh, bias = ctx.saved_tensors
        r, z, n, h_n = _gates(x, h, w_ih, w_hh, bias)
        d_n = grad_h * (1 - z) * (1 - n * n)
        d_z = grad_h * (h - n) * z * (1 - z)
        d_r = d_n * h_n * r * (1 - r)
        d_gi = torch.cat([d_r, d_z, d_n], 1)
        d_gh = torch.cat([d_r, d_z, d_n * r], 1)
        gx = gh = gwi = gwh = gb = None
        if ctx.needs_input_grad[0]:
            gx = d_gi.mm(w_ih)
        if ctx.needs_input_grad[1]:
            gh = grad_h * z + d_gh.mm(w_hh)
        if ctx.needs_input_grad[2]:
            gwi = d_gi.t().mm(x)
        if ctx.needs_input_grad[3]:
            gwh = d_gh.t().mm(h)
        if ctx.needs_input_grad[4]:
            gb = d_gi.sum(0)
        return gx, gh, gwi, gwh, gb


def gru_cell(x, h, w_ih, w_hh, bias):
    return GRUCellFunction.apply(x, h, w_ih, w_hh, bias)


def primal(x, h, w_ih, w_hh, bias):
    _, z, n, _ = _gates(x, h, w_ih, w_hh, bias)
    return (1 - z) * n + z * h


surrogate = primal
FUNCTION = gru_cell
WRT = ("x", "h", "w_ih", "w_hh", "bias")


def _make(seed, batch, n_in, n_hid):
    gen = torch.Generator().manual_seed(seed)

    def r(*s):
        return torch.randn(*s, generator=gen, dtype=torch.float64)

    return r(batch, n_in), r(batch, n_hid), r(3 * n_hid, n_in), r(3 * n_hid, n_hid), r(3 * n_hid)


CALLS = [lambda: _make(0, 3, 4, 2), lambda: _make(1, 1, 1, 3)]
LIMITS = ("double_backward", "vmap", "jvp", "compile")
DEFECT = ""
KEYWORDS = ()
