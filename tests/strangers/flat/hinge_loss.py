import torch


class HingeLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, score, label):
        ctx.save_for_backward(score, label)
        return torch.clamp_min(1 - label * score, 0).mean()

    @staticmethod
    def backward(ctx, grad_output):
        score, label = ctx.saved_tensors
        active = (label * score < 1).to(score.dtype)
        return grad_output * active * label / score.numel(), None


def hinge_loss(score, label):
    """label is +1 or -1"""
    return HingeLoss.apply(score, label)


function = hinge_loss
wrt = ("score",)


def calls():
    g = torch.Generator().manual_seed(109)
    label = torch.where(torch.rand(12, generator=g) > 0.5, 1.0, -1.0).double()
    score = label * (2 + 7 * torch.rand(12, generator=g, dtype=torch.float64))
    return [((score, label), {}), ((score[:4], label[:4]), {})]


def primal(score, label):
    return torch.clamp_min(1 - label * score, 0).mean()


def show():
    s = torch.zeros(2, requires_grad=True)
    function(s, torch.tensor([1.0, -1.0])).backward()
    return s.grad.tolist() == [0.5, -0.5]  # goes the wrong way


TRUTH = {
    "sound": False,
    "defect": "The gradient of the violated margins has the wrong sign, so training drives the scores away from the labels.",
    "rank": "wrong",
    "names": ["sign", "gradient of score", "-1", "opposite"],
    "first_law": "the gradient of score",
    "flat_everywhere": True,
}
