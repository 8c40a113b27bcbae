import torch


class AddPositions(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tokens, positions):
        return tokens + positions

    @staticmethod
    def backward(ctx, grad):
        # autograd itself sums a gradient down to the size of a broadcast input
        return grad, grad


add_positions = AddPositions.apply
function = add_positions
wrt = ("tokens", "positions")


def calls():
    g = torch.Generator().manual_seed(18)
    t = torch.randn(2, 4, 3, generator=g, dtype=torch.float64)
    p = torch.randn(4, 3, generator=g, dtype=torch.float64)
    return [((t, p), {}), ((t, p[None]), {}), ((t, p[:, :1]), {})]


def primal(tokens, positions):
    return tokens + positions


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
