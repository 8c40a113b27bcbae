import torch


class RBF(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, centers, gamma):
        sq = (x * x).sum(1)[:, None] + (centers * centers).sum(1) - 2 * x @ centers.t()
        ctx.save_for_backward(x, centers)
        ctx.gamma = gamma
        return torch.exp(-gamma * sq)

    @staticmethod
    def backward(ctx, grad):
        x, c = ctx.saved_tensors
        sq = (x * x).sum(1)[:, None] + (c * c).sum(1) - 2 * x @ c.t()
        w = -2 * ctx.gamma * grad * torch.exp(-ctx.gamma * sq)
        grad_x = w.sum(1)[:, None] * x - w @ c
        grad_c = w.sum(0)[:, None] * c - w.t() @ x
        return grad_x, grad_c, None


def rbf(x, centers, gamma=0.5):
    return RBF.apply(x, centers, gamma)


function = rbf
wrt = ("x", "centers")


def calls():
    g = torch.Generator().manual_seed(49)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64)
    c = torch.randn(5, 3, generator=g, dtype=torch.float64)
    xl = torch.randn(64, 8, generator=g, dtype=torch.float64) / 3
    cl = torch.randn(32, 8, generator=g, dtype=torch.float64) / 3
    return [((x, c), {}), ((xl, cl, 0.1), {})]


def primal(x, centers, gamma=0.5):
    return torch.exp(-gamma * ((x[:, None] - centers[None]) ** 2).sum(-1))


def show():
    """Counts the matrix products of backward with both inputs trained, and with centers frozen."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.n = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.n += "mm" in func.__name__
            return func(*args, **(kwargs or {}))

    counts = []
    for f in (function, primal):
        for frozen in (False, True):
            (x, c), _ = calls()[0]
            out = f(x.requires_grad_(), c.requires_grad_(not frozen)).sum()
            with Count() as count:
                out.backward()
            counts.append(count.n)
    return counts[0] == counts[1] == 3


TRUTH = {
    "sound": False,
    "defect": "backward always computes the gradient of both x and centers (a matrix product each), also when one is frozen; needs_input_grad is not looked at.",
    "rank": "waste",
    "names": ["needs_input_grad", "waste", "not needed", "needless", "unneeded", "unused gradient"],
    "first_law": "no gradient is computed that nobody needs",
}
