import torch


class ScaledLogSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, tau):
        out = torch.log_softmax(logits / tau, dim=-1)
        ctx.save_for_backward(out)
        ctx.tau = tau
        return out

    @staticmethod
    def backward(ctx, grad):
        (out,) = ctx.saved_tensors
        return (grad - out.exp() * grad.sum(-1, keepdim=True)) / ctx.tau, None


def annealed_scores(logits, tau):
    """log softmax(logits / tau); tau may be a number or a tensor that is learned."""
    if isinstance(tau, torch.Tensor):
        tau = tau.item()
    return ScaledLogSoftmax.apply(logits, tau)


function = annealed_scores
wrt = ("logits", "tau")


def calls():
    g = torch.Generator().manual_seed(313)
    x = torch.randn(3, 4, generator=g, dtype=torch.float64)
    return [((x, torch.tensor(0.7, dtype=x.dtype)), {}), ((x, 2.0), {})]


def primal(logits, tau):
    z = logits / tau
    return z - z.logsumexp(-1, keepdim=True)


def show():
    (x, tau), _ = calls()[0]
    tau.requires_grad_()
    v = torch.arange(12, dtype=x.dtype).reshape(3, 4)
    (true,) = torch.autograd.grad(primal(x, tau), tau, v)
    return not function(x, tau).requires_grad and true.abs() > 1e-2


TRUTH = {
    "sound": False,
    "defect": "The learned temperature is made a Python number before apply: it never gets a gradient.",
    "rank": "wrong",
    "names": ["tau", "temperature", "no gradient", "None", "item"],
    "first_law": "the gradient of tau",
}
