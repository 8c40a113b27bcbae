"""As the published pages have them: Functions without a docstring, in the combined form."""

from torch.autograd import Function


class GradFactor(Function):
    @staticmethod
    def forward(ctx, x, f):
        ctx.f = f
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_y):
        return ctx.f * grad_y, None


class GradMultiply(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return ctx.scale * grad, None
