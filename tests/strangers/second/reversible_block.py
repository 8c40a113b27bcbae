import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _Reversible(torch.autograd.Function):
    """Keeps the output only and works the input out again on the way back (RevNet)."""

    @staticmethod
    def forward(ctx, x, block, *params):
        x1, x2 = x.chunk(2, -1)
        y1 = x1 + block.f(x2)
        y = torch.cat([y1, x2 + block.g(y1)], -1)
        ctx.block = block
        ctx.save_for_backward(y, *params)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        y = ctx.saved_tensors[0]
        grads = {}

        def pull(net, inp, cot):
            wanted = [inp.detach().requires_grad_(), *(p for p in net.parameters() if p.requires_grad)]
            with torch.enable_grad():
                out = net(wanted[0])
            d = torch.autograd.grad(out, wanted, cot)
            grads.update(zip(map(id, wanted[1:]), d[1:]))
            return out.detach(), d[0]

        (y1, y2), (dy1, dy2) = y.chunk(2, -1), dy.chunk(2, -1)
        out, d = pull(ctx.block.g, y1, dy2)
        dx1 = dy1 + d
        _, d = pull(ctx.block.f, y2 - out, dx1)
        return torch.cat([dx1, dy2 + d], -1), None, *(grads.get(id(p)) for p in ctx.block.parameters())


class ReversibleBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.f, self.g = (nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(2))

    def forward(self, x):
        return _Reversible.apply(x, self, *self.parameters())


def module():
    g, block = torch.Generator().manual_seed(108), ReversibleBlock(3).double()
    for p in block.parameters():
        nn.init.normal_(p, generator=g)
    return block


wrt = ("x", "f.0.weight", "f.0.bias", "g.0.weight", "g.0.bias")


def calls():
    x = torch.randn(2, 3, 6, generator=torch.Generator().manual_seed(208), dtype=torch.float64)
    return [((x,), {}), ((x[0],), {})]


def primal(block, x):
    x1, x2 = x.chunk(2, -1)
    y1 = x1 + block.f(x2)
    return torch.cat([y1, x2 + block.g(y1)], -1)


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
