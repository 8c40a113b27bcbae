import torch


class DiscountedReturns(torch.autograd.Function):
    """G_t = r_t + gamma (not done_t) G_{t+1}, with `bootstrap` after the last step. (T, B), bool (T, B), (B,)"""

    @staticmethod
    def forward(ctx, rewards, done, bootstrap, gamma):
        keep = gamma * (~done).to(rewards.dtype)
        ctx.save_for_backward(keep)
        out, g = torch.empty_like(rewards), bootstrap
        for t in range(len(rewards) - 1, -1, -1):
            g = rewards[t] + keep[t] * g
            out[t] = g
        return out

    @staticmethod
    def backward(ctx, grad):
        (keep,) = ctx.saved_tensors
        total, carried = [], torch.zeros_like(grad[0])
        for t in range(len(grad)):
            total.append(grad[t] + carried)
            carried = keep[t] * total[-1]
        return torch.stack(total), None, carried, None


def discounted_returns(rewards, done, bootstrap, gamma=0.9):
    return DiscountedReturns.apply(rewards, done, bootstrap, gamma)


function = discounted_returns
wrt = ("rewards", "bootstrap")


def calls():
    g = torch.Generator().manual_seed(364)
    r = torch.randn(5, 2, generator=g, dtype=torch.float64)
    v = torch.randn(2, generator=g, dtype=torch.float64)
    done = torch.zeros(5, 2, dtype=torch.bool)
    done[2, 0] = done[4, 1] = True
    return [((r, done, v), {}), ((r[:1], done[:1], v), {"gamma": 0.5})]


def primal(rewards, done, bootstrap, gamma=0.9):
    out = []
    for t in range(len(rewards)):
        weight, total = torch.ones_like(bootstrap), torch.zeros_like(bootstrap)
        for s in range(t, len(rewards)):
            total = total + weight * rewards[s]
            weight = weight * gamma * ~done[s]
        out.append(total + weight * bootstrap)
    return torch.stack(out)


TRUTH = {"sound": True, "defect": "", "rank": "sound", "names": [], "first_law": ""}
