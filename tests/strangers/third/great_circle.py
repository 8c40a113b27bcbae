import torch
from torch.autograd.function import once_differentiable


class GreatCircle(torch.autograd.Function):
    """Haversine distance of points given in radians; arguments broadcast."""

    @staticmethod
    def forward(ctx, lat1, lon1, lat2, lon2, radius):
        a = torch.sin((lat2 - lat1) / 2) ** 2
        a = a + torch.cos(lat1) * torch.cos(lat2) * torch.sin((lon2 - lon1) / 2) ** 2
        a = a.clamp(max=1)
        ctx.save_for_backward(lat1, lon1, lat2, lon2, a)
        ctx.radius = radius
        return 2 * radius * torch.asin(a.sqrt())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        lat1, lon1, lat2, lon2, a = ctx.saved_tensors
        square = a * (1 - a)
        kink = square == 0  # the same point, or the opposite one
        g = torch.where(kink, 0.0, grad * ctx.radius / torch.where(kink, 1.0, square).sqrt())
        half = torch.sin((lon2 - lon1) / 2) ** 2
        along = 0.5 * torch.sin(lat2 - lat1)
        g_lat1 = g * (-along - torch.sin(lat1) * torch.cos(lat2) * half)
        g_lat2 = g * (along - torch.cos(lat1) * torch.sin(lat2) * half)
        g_lon2 = g * 0.5 * torch.cos(lat1) * torch.cos(lat2) * torch.sin(lon2 - lon1)
        grads = zip((g_lat1, -g_lon2, g_lat2, g_lon2), (lat1, lon1, lat2, lon2), strict=True)
        return (*(x.sum_to_size(t.shape) for x, t in grads), None)


def great_circle(lat1, lon1, lat2, lon2, radius=1.0):
    return GreatCircle.apply(lat1, lon1, lat2, lon2, radius)


function = great_circle
wrt = ("lat1", "lon1", "lat2", "lon2")


def calls():
    g = torch.Generator().manual_seed(367)
    a, b, c, d = torch.rand(4, 3, generator=g, dtype=torch.float64) + 0.1
    return [((a, b, -c, 2 * d), {}), ((a[:, None], b[:, None], -c, d[0]), {"radius": 6371.0})]


def primal(lat1, lon1, lat2, lon2, radius=1.0):
    def on_sphere(lat, lon):
        lat, lon = torch.broadcast_tensors(lat, lon)
        return torch.stack([lat.cos() * lon.cos(), lat.cos() * lon.sin(), lat.sin()], -1)

    p, q = torch.broadcast_tensors(on_sphere(lat1, lon1), on_sphere(lat2, lon2))
    return radius * torch.atan2(torch.linalg.cross(p, q).norm(dim=-1), (p * q).sum(-1))


TRUTH = {"sound": True, "defect": "", "rank": "sound", "names": [], "first_law": ""}
