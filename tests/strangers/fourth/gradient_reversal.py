# Ganin & Lempitsky, domain-adversarial training
import torch
from torch.autograd import Function


class ReverseLayerF(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        output = grad_output.mul_(-ctx.alpha)
        return output, None


def grad_reverse(x, alpha):
    return ReverseLayerF.apply(x, alpha)


def primal(x, alpha):
    return x * 1.0


def surrogate(x, alpha):
    return -alpha * x


FUNCTION = grad_reverse
WRT = ("x",)


def _x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [lambda: (_x(0, 3, 4), 1.0), lambda: (_x(1, 5), 0.1), lambda: (_x(2, 1, 2), 2.5)]
LIMITS = ("vmap", "jvp", "double_backward")
DEFECT = "backward multiplies the incoming gradient in place, which other users of that gradient see"
KEYWORDS = ("in place", "cotangent", "grad_output", "modified")
