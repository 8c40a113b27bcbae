import torch


class GumbelSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, tau):
        gumbels = -torch.empty_like(logits).exponential_().log()
        y = torch.softmax((logits + gumbels) / tau, dim=-1)
        ctx.save_for_backward(y)
        ctx.tau = tau
        return y

    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        inner = (grad_y * y).sum(-1, keepdim=True)
        return y * (grad_y - inner) / ctx.tau, None


def gumbel_softmax(logits, tau=1.0):
    return GumbelSoftmax.apply(logits, tau)


function = gumbel_softmax
wrt = ("logits",)


def calls():
    g = torch.Generator().manual_seed(5)
    a = torch.randn(4, 3, generator=g, dtype=torch.float64)
    b = torch.randn(2, 2, 6, generator=g, dtype=torch.float64)
    return [((a,), {}), ((b, 0.5), {})]


primal = None


def check():
    """With the noise drawn again from the same seed it is an ordinary softmax."""
    worst = 0.0
    for (logits, *rest), _ in calls():
        tau = rest[0] if rest else 1.0
        state = torch.get_rng_state()
        a = logits.clone().requires_grad_()
        b = logits.clone().requires_grad_()
        y = gumbel_softmax(a, tau)
        torch.set_rng_state(state)
        noise = -torch.empty_like(logits).exponential_().log()
        z = torch.softmax((b + noise) / tau, -1)
        v = torch.randn(y.shape, dtype=y.dtype)
        u = torch.randn(y.shape, dtype=y.dtype)
        for out, inp in ((y, a), (z, b)):
            (inp.first,) = torch.autograd.grad(out, inp, v, create_graph=True)
            (inp.second,) = torch.autograd.grad(inp.first, inp, u)
        worst = max(worst, (a.first - b.first).abs().max().item(), (a.second - b.second).abs().max().item())
    return worst < 1e-10


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
