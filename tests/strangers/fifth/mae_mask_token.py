"""Replace the hidden patches by a learned token, as in masked autoencoders."""

import torch


class MaskToken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, patches, token, keep):
        keep = keep.unsqueeze(-1)
        ctx.save_for_backward(keep)
        return torch.where(keep, patches, token)

    @staticmethod
    def backward(ctx, grad):
        (keep,) = ctx.saved_tensors
        shown = grad * keep
        g_token = shown.sum((0, 1)) if ctx.needs_input_grad[1] else None
        return shown, g_token, None


def mask_token(patches, token, keep):
    return MaskToken.apply(patches, token, keep)


def primal(patches, token, keep):
    k = keep.unsqueeze(-1).to(patches.dtype)
    return patches * k + token * (1 - k)


surrogate = primal
FUNCTION = mask_token
WRT = ("patches", "token")


def _args(seed, b, n, d):
    gen = torch.Generator().manual_seed(seed)
    patches = torch.randn(b, n, d, generator=gen, dtype=torch.float64)
    token = torch.randn(d, generator=gen, dtype=torch.float64)
    return patches, token, torch.rand(b, n, generator=gen) < 0.5


CALLS = [lambda: _args(0, 2, 5, 3), lambda: _args(1, 1, 4, 2), lambda: _args(2, 3, 3, 1)]
LIMITS = ("vmap", "jvp")
DEFECT = "the token's gradient is summed over the visible patches instead of the hidden ones"
KEYWORDS = ("token", "mask", "inverted", "hidden", "gradient")
