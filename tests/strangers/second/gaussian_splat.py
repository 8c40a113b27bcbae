import torch


class GaussianSplat1d(torch.autograd.Function):
    """Render Gaussians on a scan line of `width` pixels: sum_i amp_i exp(-(p - c_i)^2 / 2 sigma^2),
    cut off at three sigma."""

    @staticmethod
    def forward(ctx, center, amp, sigma, width):
        ctx.save_for_backward(center, amp)
        ctx.sigma, ctx.width = sigma, width
        d = torch.arange(width, dtype=center.dtype, device=center.device) - center.unsqueeze(1)
        k = torch.exp(-0.5 * (d / sigma) ** 2) * (d.abs() <= 3 * sigma)
        return (amp.unsqueeze(1) * k).sum(0)

    @staticmethod
    def backward(ctx, grad_line):
        center, amp = ctx.saved_tensors
        sigma = ctx.sigma
        d = torch.arange(ctx.width, dtype=center.dtype, device=center.device) - center.unsqueeze(1)
        k = torch.exp(-0.5 * (d / sigma) ** 2) * (d.abs() <= 2 * sigma)
        gk = grad_line * k
        return amp * (gk * d).sum(1) / sigma**2, gk.sum(1), None, None


def gaussian_splat(center, amp, sigma=1.5, width=16):
    return GaussianSplat1d.apply(center, amp, sigma, width)


function = gaussian_splat
wrt = ("center", "amp")


def calls():
    g = torch.Generator().manual_seed(152)
    c = 16 * torch.rand(5, generator=g, dtype=torch.float64)
    a = torch.randn(5, generator=g, dtype=torch.float64)
    return [((c, a), {}), ((c[:1] / 2, a[:1]), {"sigma": 0.8, "width": 9})]


def primal(center, amp, sigma=1.5, width=16):
    p = torch.arange(width, dtype=center.dtype)
    line = torch.zeros(width, dtype=center.dtype)
    for c, a in zip(center, amp):
        line = line + torch.where((p - c).abs() <= 3 * sigma, a * torch.exp(-((p - c) ** 2) / (2 * sigma**2)), 0)
    return line


def show():
    (c, a), _ = calls()[0]
    a.requires_grad_()
    (mine,) = torch.autograd.grad(function(c, a).sum(), a)
    (true,) = torch.autograd.grad(primal(c, a).sum(), a)
    return (mine - true).abs().max() > 1e-2


TRUTH = {
    "sound": False,
    "defect": "backward cuts the Gaussians off at two sigma, forward at three: the tails are missing from the "
    "gradients.",
    "rank": "wrong",
    "names": ["gradient of center", "gradient of amp", "cut off", "support", "tail", "truncated"],
    "first_law": "the gradient of center",
}
