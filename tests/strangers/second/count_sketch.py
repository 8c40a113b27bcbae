import torch


class CountSketch(torch.autograd.Function):
    """Hash the D columns of x (B, D) into `size` signed buckets; the same seed gives the same hash."""

    @staticmethod
    def forward(ctx, x, size, seed):
        torch.manual_seed(seed)
        bucket = torch.randint(size, (x.shape[1],))
        sign = (2 * torch.randint(2, (x.shape[1],)) - 1).to(x.dtype)
        ctx.save_for_backward(bucket, sign)
        return x.new_zeros(x.shape[0], size).index_add_(1, bucket, x * sign)

    @staticmethod
    def backward(ctx, grad):
        bucket, sign = ctx.saved_tensors
        return grad[:, bucket] * sign, None, None


def count_sketch(x, size=4, seed=7):
    return CountSketch.apply(x, size, seed)


function = count_sketch
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(159)
    x = torch.randn(3, 10, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x[:1],), {"size": 6, "seed": 0})]


def primal(x, size=4, seed=7):
    g = torch.Generator().manual_seed(seed)
    bucket = torch.randint(size, (x.shape[1],), generator=g)
    sign = (2 * torch.randint(2, (x.shape[1],), generator=g) - 1).to(x.dtype)
    return (x * sign) @ torch.nn.functional.one_hot(bucket, size).to(x.dtype)


def show():
    (x,), _ = calls()[0]
    state = torch.get_rng_state()
    draws = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        function(x)
        draws.append(torch.rand(4))
    torch.set_rng_state(state)
    return torch.equal(*draws)


TRUTH = {
    "sound": False,
    "defect": "Every call sets the seed of the global random generator, so all that is drawn afterwards repeats.",
    "rank": "wrong",
    "names": ["random", "global generator", "seed", "rng"],
    "first_law": "the global random state",
}
