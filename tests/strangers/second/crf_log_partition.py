import torch
from torch.autograd.function import once_differentiable


class CRFLogPartition(torch.autograd.Function):
    """log Z of a linear-chain CRF. emissions (T, B, K), transitions (from, to), lengths (B,) >= 1."""

    @staticmethod
    def forward(ctx, emissions, transitions, lengths):
        alpha = emissions[0]
        alphas = [alpha]
        for t in range(1, len(emissions)):
            step = torch.logsumexp(alpha.unsqueeze(2) + transitions, 1) + emissions[t]
            alpha = torch.where((lengths > t).unsqueeze(1), step, alpha)
            alphas.append(alpha)
        ctx.save_for_backward(transitions, lengths, torch.stack(alphas))
        return torch.logsumexp(alpha, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_logz):
        transitions, lengths, alphas = ctx.saved_tensors
        grad_e = torch.zeros_like(alphas)
        grad_t = torch.zeros_like(transitions)
        d = grad_logz.unsqueeze(1) * torch.softmax(alphas[-1], 1)
        for t in range(len(alphas) - 1, 0, -1):
            on = (lengths > t).unsqueeze(1)
            come_from = torch.softmax(alphas[t - 1].unsqueeze(2) + transitions, 1)
            flow = come_from * (d * on).unsqueeze(1)
            grad_e[t] = d * on
            grad_t += flow.sum(0)
            d = torch.where(on, flow.sum(2), d)
        grad_e[0] = d
        return grad_e, grad_t, None


def crf_log_partition(emissions, transitions, lengths):
    return CRFLogPartition.apply(emissions, transitions, lengths)


function = crf_log_partition
wrt = ("emissions", "transitions")


def calls():
    g = torch.Generator().manual_seed(107)
    e = torch.randn(5, 3, 4, generator=g, dtype=torch.float64)
    t = torch.randn(4, 4, generator=g, dtype=torch.float64)
    return [((e, t, torch.tensor([5, 2, 4])), {}), ((e[:1, :1], t, torch.tensor([1])), {})]


def primal(emissions, transitions, lengths):
    out = []
    for b, n in enumerate(lengths.tolist()):
        a = emissions[0, b]
        for t in range(1, n):
            a = torch.logsumexp(a[:, None] + transitions, 0) + emissions[t, b]
        out.append(torch.logsumexp(a, 0))
    return torch.stack(out)


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
