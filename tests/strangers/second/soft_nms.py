import torch


def _iou(boxes):
    low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    inter = (high - low).clamp(min=0).prod(-1)
    area = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
    return inter / (area[:, None] + area[None, :] - inter)


class SoftNMS(torch.autograd.Function):
    """Scores decayed by exp(-iou^2 / sigma) for every higher box; boxes (N >= 0, 4) are data."""

    @staticmethod
    def forward(ctx, boxes, scores, sigma):
        higher = scores.unsqueeze(0) > scores.unsqueeze(1)
        decay = torch.exp(-(_iou(boxes).square() * higher).sum(1) / sigma)
        ctx.save_for_backward(decay)
        return scores * decay

    @staticmethod
    def backward(ctx, grad):
        (decay,) = ctx.saved_tensors
        grad_scores = [g * d for g, d in zip(grad, decay)]
        return None, torch.stack(grad_scores), None


def soft_nms(boxes, scores, sigma=0.5):
    return SoftNMS.apply(boxes, scores, sigma)


function = soft_nms
wrt = ("scores",)


def calls():
    g = torch.Generator().manual_seed(145)
    low = torch.rand(5, 2, generator=g, dtype=torch.float64)
    boxes = torch.cat([low, low + 0.3 + torch.rand(5, 2, generator=g, dtype=torch.float64)], 1)
    scores = torch.rand(5, generator=g, dtype=torch.float64)
    return [((boxes, scores), {}), ((boxes[:0], scores[:0]), {})]


def primal(boxes, scores, sigma=0.5):
    iou, out = _iou(boxes), []
    for i in range(len(scores)):
        over = iou[i][scores > scores[i]]
        out.append(scores[i] * torch.exp(-over.pow(2).sum() / sigma))
    return torch.stack(out) if out else scores.clone()


def show():
    (boxes, scores), _ = calls()[1]
    scores.requires_grad_()
    try:
        function(boxes, scores).sum().backward()
    except RuntimeError as e:
        return "non-empty" in str(e)
    return False


TRUTH = {
    "sound": False,
    "defect": "backward raises when there are no boxes: it stacks an empty list.",
    "rank": "refused",
    "names": ["empty", "no boxes", "stack", "zero boxes", "without rows"],
    "first_law": "an empty input",
}
