import torch


class SurvivalCurve(torch.autograd.Function):
    """S(t_i) = exp(-sum_{j <= i} hazard_j dt_j)."""

    @staticmethod
    def forward(hazard, dt):
        return torch.exp(-torch.cumsum(hazard * dt, dim=-1))

    @staticmethod
    def setup_context(ctx, inputs, output):
        hazard, dt = inputs
        ctx.save_for_backward(hazard, dt, output)

    @staticmethod
    def backward(ctx, grad):
        hazard, dt, s = ctx.saved_tensors
        g = -grad * s
        later = g.sum(-1, keepdim=True) - torch.cumsum(g, dim=-1)
        return later * dt, (later * hazard).sum_to_size(dt.shape)


def survival_curve(hazard, dt):
    return SurvivalCurve.apply(hazard, dt)


function = survival_curve
wrt = ("hazard", "dt")


def calls():
    g = torch.Generator().manual_seed(329)
    h = torch.rand(3, 5, generator=g, dtype=torch.float64)
    dt = torch.rand(5, generator=g, dtype=torch.float64)
    return [((h, dt), {}), ((h[0], dt), {})]


def primal(hazard, dt):
    upto = torch.tril(torch.ones(dt.shape[-1], dt.shape[-1], dtype=dt.dtype))
    return (-((hazard * dt) @ upto.T)).exp()


def show():
    (h, dt), _ = calls()[0]
    h.requires_grad_()
    (mine,) = torch.autograd.grad(function(h, dt).sum(), h)
    (true,) = torch.autograd.grad(primal(h, dt).sum(), h)
    return (mine[:, -1].abs() < 1e-12).all() and (true[:, -1].abs() > 1e-2).all()


TRUTH = {
    "sound": False,
    "defect": "The reversed cumulative sum of backward leaves out its own term: the hazard of step i lacks the "
    "gradient of S at step i, that of the last step has none.",
    "rank": "wrong",
    "names": ["gradient of hazard", "gradient of dt", "off by one", "cumsum", "cumulative", "last"],
    "first_law": "the gradient of hazard",
}
