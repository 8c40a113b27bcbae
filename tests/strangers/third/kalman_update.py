import torch
from torch.autograd.function import once_differentiable


def _update(mean, cov, h, y, r):
    ph = cov @ h
    gain = ph / (h @ ph + r)
    return mean + gain * (y - h @ mean), cov - torch.outer(gain, ph)


class KalmanUpdate(torch.autograd.Function):
    """Scalar measurement y = h.x + noise of variance r. Rebuilds the step in backward to save memory."""

    @staticmethod
    def forward(ctx, mean, cov, h, y, r):
        ctx.save_for_backward(mean, cov, h, y)
        ctx.r = r
        return _update(mean, cov, h, y, r)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_mean, grad_cov):
        inputs = [t.detach().requires_grad_() for t in ctx.saved_tensors]
        with torch.enable_grad():
            mean, _ = _update(*inputs, ctx.r)
        grads = torch.autograd.grad(mean, inputs, grad_mean)
        return (*grads, None)


def kalman_update(mean, cov, h, y, r=0.5):
    return KalmanUpdate.apply(mean, cov, h, y, r)


function = kalman_update
wrt = ("mean", "cov", "h", "y")


def calls():
    g = torch.Generator().manual_seed(305)
    m, h = torch.randn(2, 3, generator=g, dtype=torch.float64)
    a = torch.randn(3, 3, generator=g, dtype=torch.float64)
    y = torch.tensor(0.8, dtype=torch.float64)
    return [((m, a @ a.T, h, y), {}), ((m, torch.eye(3, dtype=m.dtype), h, -y), {"r": 2.0})]


def primal(mean, cov, h, y, r=0.5):
    s = h @ cov @ h + r
    return mean + (cov @ h) * (y - h @ mean) / s, cov - (cov @ h)[:, None] * (cov @ h)[None, :] / s


def show():
    args, _ = calls()[0]
    cov = args[1].requires_grad_()
    off = []
    for k in (0, 1):
        (mine,) = torch.autograd.grad(function(*args)[k].sum(), cov)
        (true,) = torch.autograd.grad(primal(*args)[k].sum(), cov)
        off.append((mine - true).abs().max().item())
    return off[0] < 1e-10 and off[1] > 1e-2


TRUTH = {
    "sound": False,
    "defect": "The incoming gradient of the second output, the covariance, is ignored: what depends on it has no "
    "gradient at all.",
    "rank": "wrong",
    "names": ["grad_cov", "second output", "output 1", "ignored", "cov"],
    "first_law": "the gradient through the second output",
}
