import torch
from torch.autograd import Function


class ClampedExp(Function):
    """exp with the exponent capped at 15, for variances (NeRF, heteroscedastic regression)"""

    @staticmethod
    def forward(ctx, x):
        ctx.out = torch.exp(x.clamp(max=15))
        ctx.save_for_backward(x)
        return ctx.out

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * ctx.out * (x <= 15).to(g.dtype)


safe_exp = ClampedExp.apply
function = safe_exp
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(36)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x + torch.tensor([0.0, 5.0, 20.0], dtype=torch.float64),), {})]


def primal(x):
    return torch.exp(x.clamp(max=15))


def show():
    import gc

    from torch.multiprocessing.reductions import StorageWeakRef

    x = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    y = function(x)
    y.detach().mul_(5)
    (stale,) = torch.autograd.grad(y.sum(), x)
    gc.collect()
    gc.disable()
    y = function(x)
    alive = StorageWeakRef(y.untyped_storage())
    del y
    kept = not alive.expired()
    gc.enable()
    return kept and stale.tolist() == [5.0, 5.0, 5.0]


TRUTH = {
    "sound": False,
    "defect": "The output is kept on ctx and not by save_for_backward: a reference cycle keeps its memory until the garbage collector runs, and a change of the output in place is not noticed.",
    "rank": "wrong",
    "names": ["save_for_backward", "ctx", "memory", "cycle", "leak", "alive", "in place", "in-place", "stale"],
    "first_law": "memory is freed when the output is dropped, or a change of the output in place is noticed",
}
