import torch
from torch.autograd.function import once_differentiable


class GIoULoss(torch.autograd.Function):
    """1 - GIoU of matching boxes (x1, y1, x2, y2), one value per pair. Targets are data."""

    @staticmethod
    def forward(ctx, pred, target):
        ctx.save_for_backward(pred, target)
        wh = (torch.minimum(pred[:, 2:], target[:, 2:]) - torch.maximum(pred[:, :2], target[:, :2])).clamp(min=0)
        hull = torch.maximum(pred[:, 2:], target[:, 2:]) - torch.minimum(pred[:, :2], target[:, :2])
        inter = wh.prod(1)
        union = (pred[:, 2:] - pred[:, :2]).prod(1) + (target[:, 2:] - target[:, :2]).prod(1) - inter
        return 2 - inter / union - union / hull.prod(1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_loss):
        pred, target = ctx.saved_tensors
        size = pred[:, 2:] - pred[:, :2]
        wh = (torch.minimum(pred[:, 2:], target[:, 2:]) - torch.maximum(pred[:, :2], target[:, :2])).clamp(min=0)
        hull = torch.maximum(pred[:, 2:], target[:, 2:]) - torch.minimum(pred[:, :2], target[:, :2])
        inter = wh.prod(1, keepdim=True)
        union = size.prod(1, keepdim=True) + (target[:, 2:] - target[:, :2]).prod(1, keepdim=True) - inter
        enclosing = hull.prod(1, keepdim=True)
        d_area = torch.cat([-size.flip(1), size.flip(1)], 1)
        moves = torch.cat([-1.0 * (pred[:, :2] > target[:, :2]), 1.0 * (pred[:, 2:] < target[:, 2:])], 1)
        d_inter = moves * wh.flip(1).repeat(1, 2) * (inter > 0)
        d_union = d_area - d_inter
        d_iou = d_inter / union - inter * d_union / union**2
        d_gap = d_union / enclosing
        return -grad_loss.unsqueeze(1) * (d_iou + d_gap), None


function = GIoULoss.apply
wrt = ("pred",)


def calls():
    g = torch.Generator().manual_seed(121)
    low = torch.rand(2, 6, 2, generator=g, dtype=torch.float64)
    high = low + 0.2 + torch.rand(2, 6, 2, generator=g, dtype=torch.float64)
    pred, target = torch.cat([low, high], -1)
    return [((pred, target), {}), ((pred[:2] + 3, target[:2]), {})]


def primal(pred, target):
    (p1, p2), (t1, t2) = pred.split(2, 1), target.split(2, 1)
    inter = (torch.min(p2, t2) - torch.max(p1, t1)).clamp(min=0).prod(1)
    union = (p2 - p1).prod(1) + (t2 - t1).prod(1) - inter
    hull = (torch.max(p2, t2) - torch.min(p1, t1)).prod(1)
    return 1 - inter / union + (hull - union) / hull


def show():
    (pred, target), _ = calls()[0]
    pred.requires_grad_()
    (mine,) = torch.autograd.grad(function(pred, target).sum(), pred)
    (true,) = torch.autograd.grad(primal(pred, target).sum(), pred)
    return not torch.allclose(mine, true, rtol=1e-3)


TRUTH = {
    "sound": False,
    "defect": "The gradient treats the enclosing box as a constant: the derivative of its area is missing.",
    "rank": "wrong",
    "names": ["enclosing", "hull", "gradient of pred", "pred", "missing term"],
    "first_law": "the gradient of pred",
}
