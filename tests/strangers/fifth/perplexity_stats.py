"""Token cross entropy with padding, recording its running statistics for the logger."""

import torch

_STATS = {}


class TokenCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets, pad):
        keep = targets != pad
        log_p = torch.log_softmax(logits, -1)
        picked = log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
        ctx.save_for_backward(logits, targets, keep)
        return -(picked * keep).sum() / keep.sum()

    @staticmethod
    def backward(ctx, grad):
        logits, targets, keep = ctx.saved_tensors
        hot = torch.nn.functional.one_hot(targets, logits.shape[-1])
        diff = (torch.softmax(logits, -1) - hot) * keep.unsqueeze(-1)
        return grad * diff / keep.sum(), None, None


def token_loss(logits, targets, pad):
    loss = TokenCrossEntropy.apply(logits, targets, pad)
    _STATS["perplexity"] = loss.exp()
    _STATS["tokens"] = _STATS.get("tokens", 0) + int((targets != pad).sum())
    return loss


def primal(logits, targets, pad):
    return torch.nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=pad)


surrogate = primal
FUNCTION = token_loss
WRT = ("logits",)


def _args(seed, shape, vocab, pad):
    gen = torch.Generator().manual_seed(seed)
    logits = torch.randn(*shape, vocab, generator=gen, dtype=torch.float64)
    targets = torch.randint(vocab, shape, generator=gen)
    targets[..., -1] = pad
    return logits, targets, pad


CALLS = [lambda: _args(0, (2, 4), 5, 0), lambda: _args(1, (3,), 4, 3)]
LIMITS = ("vmap", "jvp")
DEFECT = "the global statistics keep the last loss with its graph, and so the logits, alive"
KEYWORDS = ("memory", "global", "alive", "held", "leak", "released")
