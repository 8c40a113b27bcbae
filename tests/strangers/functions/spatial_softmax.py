import torch


class SpatialSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, feature):
        n, c, h, w = feature.shape
        prob = torch.softmax(feature.reshape(n, c, h * w), dim=2).view(n, c, h, w)
        ctx.save_for_backward(prob)
        return prob

    @staticmethod
    def backward(ctx, grad_output):
        (prob,) = ctx.saved_tensors
        n, c, h, w = prob.shape
        p = prob.view(n, c, -1)
        g = grad_output.view(n, c, -1)
        gx = p * (g - (g * p).sum(2, keepdim=True))
        return gx.view(n, c, h, w)


function = SpatialSoftmax.apply
wrt = ("feature",)


def calls():
    g = torch.Generator().manual_seed(31)
    a = torch.randn(2, 3, 4, 4, generator=g, dtype=torch.float64)
    b = torch.randn(1, 2, 3, 5, generator=g, dtype=torch.float64)
    return [((a,), {}), ((b,), {})]


def primal(feature):
    n, c, h, w = feature.shape
    return torch.softmax(feature.reshape(n, c, -1), 2).reshape(n, c, h, w)


def show():
    (x,), _ = calls()[0]
    weight = torch.randn(2, 3, 4, 4, dtype=torch.float64)
    out = function(x.requires_grad_())
    try:
        (out.transpose(2, 3) * weight).sum().backward()
    except RuntimeError as e:
        return "view" in str(e)
    return False


TRUTH = {
    "sound": False,
    "defect": "backward calls view on grad_output and raises when the incoming gradient is not contiguous, as after a transpose of height and width.",
    "rank": "refused",
    "names": ["contiguous", "view", "stride", "layout", "incoming gradient"],
    "first_law": "backward takes a non-contiguous grad_output",
}
