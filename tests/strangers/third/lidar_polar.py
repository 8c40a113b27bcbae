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
        square = x * x + y * y
        g_x = g_y = None
        if g_range is not None:
            g = g_range * square.rsqrt()
            g_x, g_y = g * x, g * y
        if g_bearing is not None:
            g = g_bearing / square
            g_x = -g * y if g_x is None else g_x - g * y
            g_y = g * x if g_y is None else g_y + g * x
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
