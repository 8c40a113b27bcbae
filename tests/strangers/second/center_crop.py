import torch


class CenterCrop(torch.autograd.Function):
    """Central crop of an image (..., H, W). Returns a new tensor that is safe to modify."""

    @staticmethod
    def forward(ctx, image, height, width):
        H, W = image.shape[-2:]
        ctx.top, ctx.left = (H - height) // 2, (W - width) // 2
        ctx.pad = (ctx.left, W - width - ctx.left, ctx.top, H - height - ctx.top)
        crop = image[..., ctx.top : ctx.top + height, ctx.left : ctx.left + width]
        return crop if crop.shape != image.shape else image.clone()

    @staticmethod
    def backward(ctx, grad):
        return torch.nn.functional.pad(grad, ctx.pad), None, None


def center_crop(image, height=2, width=2):
    return CenterCrop.apply(image, height, width)


function = center_crop
wrt = ("image",)


def calls():
    g = torch.Generator().manual_seed(147)
    a = torch.randn(2, 3, 4, 5, generator=g, dtype=torch.float64)
    b = torch.randn(3, 3, generator=g, dtype=torch.float64)
    return [((a,), {}), ((b,), {"height": 3, "width": 1})]


def primal(image, height=2, width=2):
    H, W = image.shape[-2:]
    return image.narrow(-2, (H - height) // 2, height).narrow(-1, (W - width) // 2, width).clone()


def show():
    (image,), _ = calls()[0]
    before = image.clone()
    function(image).zero_()
    return not torch.equal(image, before)


TRUTH = {
    "sound": False,
    "defect": "The output is a view of the input and not a new tensor: writing to it changes the image.",
    "rank": "wrong",
    "names": ["view", "shares memory", "alias", "storage", "new tensor"],
    "first_law": "the output shares memory with image",
}
