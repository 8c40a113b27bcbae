import torch


class TopKGate(torch.autograd.Function):
    """Hard choice of k experts per token; backward is that of k * softmax(logits / temperature)."""

    @staticmethod
    def forward(ctx, logits, k, temperature):
        ctx.k, ctx.temperature = k, temperature
        ctx.save_for_backward(logits)
        hard = torch.zeros_like(logits)
        return hard.scatter_(-1, logits.topk(k, dim=-1).indices, 1.0)

    @staticmethod
    def backward(ctx, grad):
        (logits,) = ctx.saved_tensors
        p = torch.softmax(logits / ctx.temperature, dim=-1)
        g = p * (grad - (grad * p).sum(-1, keepdim=True))
        return g * (ctx.k / ctx.temperature), None, None


def topk_gate(logits, k=2, temperature=1.0):
    return TopKGate.apply(logits, k, temperature)


function = topk_gate
wrt = ("logits",)


def calls():
    g = torch.Generator().manual_seed(356)
    x = torch.randn(3, 5, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x[0],), {"k": 1, "temperature": 0.5})]


def primal(logits, k=2, temperature=1.0):
    chosen = torch.topk(logits, k).indices
    return torch.nn.functional.one_hot(chosen, logits.shape[-1]).sum(-2).to(logits.dtype)


def surrogate(logits, k=2, temperature=1.0):
    return k * torch.softmax(logits / temperature, -1)


TRUTH = {"sound": True, "defect": "", "rank": "sound", "names": [], "first_law": ""}
