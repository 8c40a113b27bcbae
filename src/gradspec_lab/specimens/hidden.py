"""Functions that are sound in a plain pass, and sick beside a tangent or where backward is differentiated.

Each stands on another Function that only forward mode, or only the backward pass of a backward pass, calls: the place
where a disease stays longest.
"""

import torch
from torch import Tensor
from torch.autograd import forward_ad

from gradspec_lab.specimens.diseased import DISEASED, diseased
from gradspec_lab.specimens.honest import Scale

__all__ = ["DISEASED"]  # where the decorator enters them


def beside_a_tangent(**caught_by: str):
    """Enter the function that is `Scale`, and the decorated class where its input carries a tangent."""

    def enter(helper):
        class Hidden(Scale):
            @classmethod
            def apply(cls, x, factor):
                if forward_ad.unpack_dual(x).tangent is not None and not torch.compiler.is_exporting():
                    return helper.apply(x, factor)
                return super().apply(x, factor)

        Hidden.__name__ = f"{helper.__name__}BesideATangent"
        diseased(**{law: f"^beside a tangent, {words}" for law, words in caught_by.items()})(Hidden)
        return helper

    return enter


def through_backward(**caught_by: str):
    """Enter the function that is `Scale`, whose backward is the decorated class where it is differentiated."""

    def enter(helper):
        class Hidden(Scale):
            @staticmethod
            def backward(ctx, y_bar):
                scaled = helper.apply if torch.is_grad_enabled() else Scale.apply
                return scaled(ctx.factor * y_bar, 1.0), None

        Hidden.__name__ = f"{helper.__name__}ThroughBackward"
        diseased(**{law: f"^where backward is differentiated, {words}" for law, words in caught_by.items()})(Hidden)
        return helper

    return enter


@beside_a_tangent(global_state=r"forward: the default dtype is")
@through_backward(global_state=r"backward: the default dtype is")
class MovesTheDefaultDtype(Scale):
    @staticmethod
    def forward(x, factor):
        torch.set_default_dtype(torch.float64)
        return x.clone()


@beside_a_tangent(declared_draws=r"forward draws from torch's generator")
@through_backward(declared_draws=r"backward draws from torch's generator")
class Draws(Scale):
    @staticmethod
    def forward(x, factor):
        return x + 0 * torch.rand(())


@beside_a_tangent(inputs_untouched=r"forward writes to `x`")
class WritesToItsArgument(Scale):
    @staticmethod
    def forward(x, factor):
        y = x.clone()
        x.data.add_(1e-6)
        return y


@beside_a_tangent(inputs_untouched=r"forward writes to the tangent of `x`")
class WritesToItsTangent(Scale):
    @staticmethod
    def jvp(ctx, x_dot, _):
        return x_dot.mul_(ctx.factor).clone()


@beside_a_tangent(cotangents_untouched=r"backward writes to the cotangent of output 0")
@through_backward(cotangents_untouched=r"backward writes to the cotangent of gradient of x")
class WritesToItsCotangent(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        y_bar.data.mul_(1 + 1e-9)
        return ctx.factor * y_bar, None


@beside_a_tangent(aliasing=r"the output shares memory with `x`")
class Aliases(Scale):
    @staticmethod
    def forward(x, factor):
        return x.data


@beside_a_tangent(ctx_clean=r"a tensor sits on ctx\.x")
@through_backward(ctx_clean=r"a tensor sits on ctx\.x")
class KeepsATensor(Scale):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.x, ctx.factor = inputs


@beside_a_tangent(freed=r"1 of 1 outputs outlive")
@through_backward(freed=r"\d of \d outputs and gradients outlive")
class KeepsItsOutput(Scale):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]
        ctx.y = output


@beside_a_tangent(no_host_read=r"forward reads .*_local_scalar_dense")
@through_backward(no_host_read=r"backward reads .*_local_scalar_dense")
class Reads(Scale):
    @staticmethod
    def forward(x, factor):
        x.sum().item()
        return x.clone()


@beside_a_tangent(retained_graph=r"gradient of the second backward over one graph .* differs")
@through_backward(retained_graph=r"gradient of the third backward of order 2 over one graph .* differs")
class Drifts(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        ctx.factor *= 2
        return ctx.factor / 2 * y_bar, None


@beside_a_tangent(cotangent_layout=r"a cotangent that is .* raised RuntimeError")
@through_backward(cotangent_layout=r"a cotangent that is .* raised RuntimeError")
class Views(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        return (ctx.factor * y_bar.view(-1)).view(y_bar.shape), None


COUNTER = torch.zeros(())


@beside_a_tangent(declared_writes=r"forward writes to a tensor .* that is no argument")
@through_backward(declared_writes=r"backward writes to a tensor .* that is no argument")
class Counts(Scale):
    @staticmethod
    def forward(x, factor):
        COUNTER.add_(1)
        return x.clone()


class _NoRule(Scale):
    generate_vmap_rule = False


@diseased(vmap=r"raised RuntimeError")
class NoVmapRuleBesideATangent(Scale):
    @classmethod
    def apply(cls, x: Tensor, factor):
        if forward_ad.unpack_dual(x).tangent is not None and not torch.compiler.is_exporting():
            return _NoRule.apply(x, factor)
        return super().apply(x, factor)
