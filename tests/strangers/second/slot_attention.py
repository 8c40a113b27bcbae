import torch
from torch import nn


class _OverSlots(torch.autograd.Function):
    """Softmax over the slots (dim 1): every input is shared out between them."""

    @staticmethod
    def forward(ctx, logits):
        attn = torch.softmax(logits, 1)
        ctx.save_for_backward(attn)
        return attn

    @staticmethod
    def backward(ctx, grad):
        (attn,) = ctx.saved_tensors
        return attn * (grad - (grad * attn).sum(1, keepdim=True))


class SlotAttentionStep(nn.Module):
    """One update of slots (B, S, D) from inputs (B, N, D): weighted mean of the values (Locatello 2020)."""

    def __init__(self, d, generator=None):
        super().__init__()
        w = torch.randn(3, d, d, generator=generator, dtype=torch.float64) / d**0.5
        self.to_q, self.to_k, self.to_v = (nn.Parameter(m.clone()) for m in w)
        self.scale = d**-0.5

    def forward(self, slots, inputs):
        q, k, v = slots @ self.to_q, inputs @ self.to_k, inputs @ self.to_v
        attn = _OverSlots.apply(self.scale * q @ k.transpose(1, 2)) + 1e-8
        attn = attn / attn.sum(2, keepdim=True).detach()
        return attn @ v


def module():
    return SlotAttentionStep(4, torch.Generator().manual_seed(156))


wrt = ("slots", "inputs", "to_q", "to_k", "to_v")


def calls():
    g = torch.Generator().manual_seed(256)
    slots, inputs = torch.randn(2, 9, 4, generator=g, dtype=torch.float64).split((3, 6), 1)
    return [((slots, inputs), {}), ((slots[:1], inputs[:1, :5]), {})]


def primal(step, slots, inputs):
    logits = (slots @ step.to_q) @ (inputs @ step.to_k).mT * step.scale
    attn = logits.softmax(1) + 1e-8
    return torch.nn.functional.normalize(attn, p=1, dim=2) @ (inputs @ step.to_v)


def show():
    (slots, inputs), _ = calls()[0]
    slots.requires_grad_()
    (mine,) = torch.autograd.grad(module()(slots, inputs).sum(), slots)
    (true,) = torch.autograd.grad(primal(module(), slots, inputs).sum(), slots)
    return not torch.allclose(mine, true, rtol=1e-2)


TRUTH = {
    "sound": False,
    "defect": "The normalisation over the inputs is detached, so its part of the gradients of slots, inputs, to_q "
    "and to_k is missing.",
    "rank": "wrong",
    "names": ["detach", "gradient of slots", "gradient of inputs", "to_q", "to_k", "normalisation"],
    "first_law": "the gradient of slots",
}
