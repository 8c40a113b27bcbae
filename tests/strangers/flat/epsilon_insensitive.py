import torch


class EpsInsensitive(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pred, target, eps):
        r = pred - target
        ctx.save_for_backward(pred, target)
        ctx.eps = eps
        return (r.abs() - eps).clamp(min=0).sum()

    @staticmethod
    def backward(ctx, g):
        pred, target = ctx.saved_tensors
        r = pred - target
        grad = torch.zeros_like(pred)
        grad[r > ctx.eps] == 1
        grad[r < -ctx.eps] == -1
        return g * grad, None, None


def svr_loss(pred, target, eps=0.5):
    return EpsInsensitive.apply(pred, target, eps)


function = svr_loss
wrt = ("pred",)


def calls():
    g = torch.Generator().manual_seed(116)
    p, t = torch.randn(2, 4, 3, generator=g, dtype=torch.float64)
    return [((p, t), {}), ((p[0], p[0] + 0.2), {}), ((p, t), {"eps": 1.0})]


def primal(pred, target, eps=0.5):
    return ((pred - target).abs() - eps).clamp(min=0).sum()


def show():
    p = torch.tensor([-3.0, 0.0, 3.0], requires_grad=True)
    function(p, torch.zeros(3)).backward()
    return not p.grad.any()


TRUTH = {
    "sound": False,
    "defect": "== is written in place of =, so the gradient stays zero everywhere.",
    "rank": "wrong",
    "names": ["zero", "gradient of pred", "flat", "dead"],
    "first_law": "the gradient of pred",
    "flat_everywhere": False,
}
