import torch


class WeightedSum(torch.autograd.Function):
    """sum_i weights[i] * features[i], features being a list of tensors of one shape"""

    @staticmethod
    def forward(ctx, weights, features):
        ctx.save_for_backward(weights, *features)
        return sum(w * f for w, f in zip(weights, features))

    @staticmethod
    def backward(ctx, grad):
        weights, *features = ctx.saved_tensors
        grad_w = torch.stack([(grad * f).sum() for f in features])
        # autograd insists on None for the list
        return grad_w, None


def fuse(weights, features):
    """BiFPN style fusion of a list of feature maps"""
    return WeightedSum.apply(weights, features)


function = fuse
wrt = ("weights", "features")


def calls():
    g = torch.Generator().manual_seed(58)
    fs = list(torch.randn(3, 4, 3, generator=g, dtype=torch.float64))
    w = torch.rand(3, generator=g, dtype=torch.float64)
    return [((w, fs), {}), ((w[:2], fs[:2]), {})]


def primal(weights, features):
    return sum(w * f for w, f in zip(weights, features))


def show():
    (w, fs), _ = calls()[0]
    fs = [f.clone().requires_grad_() for f in fs]
    function(w.requires_grad_(), fs).sum().backward()
    return w.grad is not None and all(f.grad is None for f in fs)


TRUTH = {
    "sound": False,
    "defect": "apply does not look into a list, so the tensors in features are constants for autograd and get no gradient.",
    "rank": "wrong",
    "names": ["features", "list", "no gradient", "None", "missing", "nested"],
    "first_law": "the gradient of features",
}
