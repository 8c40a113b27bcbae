import torch
from torch import nn


class DropBlockFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mask):
        ctx.save_for_backward(mask)
        return x * mask * (mask.numel() / mask.sum().clamp(min=1))

    @staticmethod
    def backward(ctx, grad):
        (mask,) = ctx.saved_tensors
        return grad * mask, None


class DropBlock(nn.Module):
    """Drops squares of a feature map (B, C, H, W) and scales the rest up."""

    def __init__(self, p=0.15, size=3):
        super().__init__()
        self.p, self.size = p, size

    def forward(self, x):
        if not self.training:
            return x
        seeds = (torch.rand_like(x) < self.p / self.size**2).to(x.dtype)
        dropped = nn.functional.max_pool2d(seeds, self.size, stride=1, padding=self.size // 2)
        return DropBlockFn.apply(x, 1 - dropped)


def module():
    return DropBlock(p=0.6)


wrt = ("x",)
primal = None


def calls():
    g = torch.Generator().manual_seed(332)
    x = torch.rand(2, 3, 6, 6, generator=g, dtype=torch.float64) + 0.5
    return [((x,), {})]


def show():
    (x,), _ = calls()[0]
    x.requires_grad_()
    m = module()
    for _ in range(5):
        y = m(x)
        (mine,) = torch.autograd.grad(y.sum(), x)
        true = (y / x).detach()
        if true.max() > 1.01:
            return torch.equal(mine != 0, true != 0) and (true - mine).max().item() > 1e-2
    return False


TRUTH = {
    "sound": False,
    "defect": "Forward scales what is kept by numel / kept, backward applies the mask without the scale.",
    "rank": "wrong",
    "names": ["scale", "factor", "mask", "dropout", "gradient of x"],
    "first_law": "the gradient of x at the mask that was drawn",
}
