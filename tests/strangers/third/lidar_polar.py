import torch


class ToPolar(torch.autograd.Function):
    """Points of a scan to range and bearing; a gradient that does not come is None and costs nothing."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, y)
        return torch.hypot(x, y), torch.atan2(y, x)

    @staticmethod
    def backward(ctx, g_range, g_bearing):
        x, y = ctx.saved_tensors
        origin = (x == 0) & (y == 0)  # where both are taken to be flat
        r = torch.hypot(torch.where(origin, 1.0, x), y)
        g_x = g_y = None
        if g_range is not None:
            g = g_range / r
            g_x, g_y = g * x, g * y
        if g_bearing is not None:
            a, b = g_bearing * (y / r) / r, g_bearing * (x / r) / r
            g_x = -a if g_x is None else g_x - a
            g_y = b if g_y is None else g_y + b
        return g_x, g_y


def lidar_polar(x, y):
    return ToPolar.apply(x, y)


function = lidar_polar
wrt = ("x", "y")


def calls():
    g = torch.Generator().manual_seed(369)
    x, y = torch.randn(2, 3, 4, generator=g, dtype=torch.float64)
    return [((x, y), {}), ((x[0], -y[1]), {})]


def primal(x, y):
    z = torch.complex(x, y)
    return z.abs(), z.angle()


TRUTH = {"sound": True, "defect": "", "rank": "sound", "names": [], "first_law": ""}
