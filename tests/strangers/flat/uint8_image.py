import torch


class Quant(torch.autograd.Function):
    """Round an image in [0, 1] to 8 bits, straight through inside the range."""

    @staticmethod
    def forward(ctx, img):
        return (img.clamp(0, 1) * 255.0).round() / 255.0

    @staticmethod
    def backward(ctx, grad_output):
        return torch.zeros_like(grad_output)


to_uint8 = Quant.apply
function = to_uint8
wrt = ("img",)


def calls():
    g = torch.Generator().manual_seed(100)
    a = 2 + 7 * torch.rand(4, 3, generator=g, dtype=torch.float64)  # forgot to divide by 255
    return [((a,), {}), ((-a[:2],), {})]


def primal(img):
    return (img.clamp(0, 1) * 255.0).round() / 255.0


def surrogate(img):
    return img.clamp(0, 1)


def show():
    x = torch.tensor([0.3, 0.8], requires_grad=True)
    function(x).sum().backward()
    return x.grad.tolist() == [0.0, 0.0]


TRUTH = {
    "sound": False,
    "defect": "backward is zero everywhere, where it is meant to pass gradients for 0 <= img <= 1.",
    "rank": "wrong",
    "names": ["zero", "gradient of img", "surrogate", "flat", "dead"],
    "first_law": "the gradient of img",
    "flat_everywhere": True,
}
