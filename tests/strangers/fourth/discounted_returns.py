# returns-to-go for actor critic; the gradient flows into a learned reward model
import torch


class DiscountedReturns(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rewards, dones, gamma):
        ctx.save_for_backward(dones)
        ctx.gamma = gamma
        out = torch.empty_like(rewards)
        run = torch.zeros_like(rewards[0])
        for t in range(rewards.size(0) - 1, -1, -1):
            run = rewards[t] + gamma * run * (~dones[t])
            out[t] = run
        return out

    @staticmethod
    def backward(ctx, grad_out):
        (dones,) = ctx.saved_tensors
        grads = []
        run = torch.zeros_like(grad_out[0])
        for t in range(grad_out.size(0)):
            run = grad_out[t] + (ctx.gamma * run * (~dones[t - 1]) if t else 0)
            grads.append(run)
        return torch.stack(grads), None, None


def discounted_returns(rewards, dones, gamma):
    return DiscountedReturns.apply(rewards, dones, gamma)


def primal(rewards, dones, gamma):
    rows = []
    for t in range(len(rewards)):
        weight = torch.ones_like(rewards[0])
        acc = torch.zeros_like(rewards[0])
        for s in range(t, len(rewards)):
            acc = acc + weight * rewards[s]
            weight = weight * gamma * (~dones[s])
        rows.append(acc)
    return torch.stack(rows)


surrogate = primal
FUNCTION = discounted_returns
WRT = ("rewards",)


def _args(seed, steps, envs, p=0.3, gamma=0.9):
    gen = torch.Generator().manual_seed(seed)
    r = torch.randn(steps, envs, generator=gen, dtype=torch.float64)
    return r, torch.rand(steps, envs, generator=gen) < p, gamma


CALLS = [lambda: _args(0, 6, 3), lambda: _args(1, 1, 2), lambda: _args(2, 5, 1, p=0.0, gamma=1.0)]
LIMITS = ("vmap", "jvp")
DEFECT = ""
KEYWORDS = ()
