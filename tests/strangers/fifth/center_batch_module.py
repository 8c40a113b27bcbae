"""Layer that centres features by the batch in training and by a running mean otherwise."""

import torch


class CenterFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, module):
        ctx.module = module
        return x - (x.mean(0) if module.training else module.running)

    @staticmethod
    def backward(ctx, grad):
        if ctx.module.training:
            grad = grad - grad.mean(0)
        return grad, None


class CenterFeatures(torch.nn.Module):
    def __init__(self, running):
        super().__init__()
        self.register_buffer("running", running)

    def forward(self, x):
        return CenterFunction.apply(x, self)


def center_features(x, running, training):
    layer = CenterFeatures(running).train(training)
    y = layer(x)
    layer.eval()
    return y


def primal(x, running, training):
    if training:
        n = x.shape[0]
        return x - x.sum(0) / n
    return x - running


surrogate = primal
FUNCTION = center_features
WRT = ("x",)


def _args(seed, n, d, training):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=gen, dtype=torch.float64)
    return x, torch.randn(d, generator=gen, dtype=torch.float64), training


CALLS = [lambda: _args(0, 4, 3, False), lambda: _args(1, 5, 2, True), lambda: _args(2, 2, 2, True)]
LIMITS = ("vmap", "jvp")
DEFECT = "backward reads the training flag when it runs, not as it was in forward"
KEYWORDS = ("training", "flag", "mode", "eval", "gradient")
