import numpy as np
import torch
from torch.autograd.function import once_differentiable

GRID = np.array([-2.0, -1.0, 0.0, 0.5, 2.0])
VALUES = np.array([0.0, 0.3, 0.25, 1.0, 1.2])


class Calibrate(torch.autograd.Function):
    """Measured response curve of the sensor, piecewise linear. float32 only."""

    @staticmethod
    def forward(ctx, x):
        assert x.dtype == torch.float32, "the table is float32"
        a = x.detach().cpu().numpy()
        y = np.interp(a, GRID, VALUES)
        k = np.clip(np.searchsorted(GRID, a, side="right") - 1, 0, len(GRID) - 2)
        slope = (np.diff(VALUES) / np.diff(GRID))[k]
        slope = np.where((a < GRID[0]) | (a > GRID[-1]), 0.0, slope)
        ctx.save_for_backward(torch.as_tensor(slope, dtype=x.dtype, device=x.device))
        return torch.as_tensor(y, dtype=x.dtype, device=x.device)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (slope,) = ctx.saved_tensors
        return grad_output * slope


def calibrate(x):
    return Calibrate.apply(x)


function = calibrate
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(19)
    return [((torch.randn(4, 3, generator=g),), {}), ((1.5 * torch.randn(8, generator=g),), {})]


def primal(x):
    grid = torch.as_tensor(GRID, dtype=x.dtype)
    values = torch.as_tensor(VALUES, dtype=x.dtype)
    c = x.clamp(-2, 2)
    k = (torch.searchsorted(grid, c.detach().contiguous(), right=True) - 1).clamp(0, 3)
    slope = (values[1:] - values[:-1]) / (grid[1:] - grid[:-1])
    return values[k] + slope[k] * (c - grid[k])


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
