"""Functions that the tests call under a watch."""

from __future__ import annotations

import torch


class Doubled(torch.autograd.Function):
    """Right."""

    @staticmethod
    def forward(ctx, x, factor=2.0):
        ctx.factor = factor
        return factor * x

    @staticmethod
    def backward(ctx, grad):
        return ctx.factor * grad, None


class Wrong(torch.autograd.Function):
    """Its gradient is one and a half times the derivative."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        return 3 * grad


class Cubed(torch.autograd.Function):
    """Right, and takes part in torch.func."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad


class InSingle(torch.autograd.Function):
    """Right, and computes in float32 whatever it is given."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.float().exp().to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return (grad.float() * x.float().exp()).to(x.dtype)


class InSingleAndWrong(InSingle):
    """Its gradient is one and a half times the derivative."""

    @staticmethod
    def backward(ctx, grad):
        return 1.5 * InSingle.backward(ctx, grad)


class Runs(torch.autograd.Function):
    """Right: runs a module, whose parameters are arguments, as a function that checkpoints does."""

    @staticmethod
    def forward(ctx, x, module, *parameters):
        ctx.module = module
        ctx.save_for_backward(x, *parameters)
        with torch.no_grad():
            return module(x)

    @staticmethod
    def backward(ctx, grad):
        x, *parameters = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            found = torch.autograd.grad(ctx.module(x), (x, *parameters), grad)
        return found[0], None, *found[1:]


class RunsTwice(Runs):
    """The gradient of the first parameter is twice the derivative."""

    @staticmethod
    def backward(ctx, grad):
        x, _, first, *rest = Runs.backward(ctx, grad)
        return x, None, 2 * first, *rest


class RunsAndLoses(Runs):
    """The gradient of the first parameter is lost."""

    @staticmethod
    def backward(ctx, grad):
        x, _, _, *rest = Runs.backward(ctx, grad)
        return x, None, None, *rest


class InItsDtype(torch.autograd.Function):
    """Right, and multiplies by the weight of a layer in backward, which is no argument, and in float32."""

    @staticmethod
    def forward(ctx, x, layer):
        ctx.weight = layer.weight
        return x @ layer.weight.detach().to(x.dtype).T

    @staticmethod
    def backward(ctx, grad):
        return grad @ ctx.weight, None
