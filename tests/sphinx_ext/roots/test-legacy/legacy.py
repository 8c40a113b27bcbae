"""A project as they are: a Function with no docstring, documented by autodoc alone."""

from torch.autograd import Function


class Factor(Function):
    @staticmethod
    def forward(self, x, f):
        self.f = f
        return x.view_as(x)

    @staticmethod
    def backward(ctx, y_bar):
        """Scale the cotangent."""
        return ctx.f * y_bar, None
