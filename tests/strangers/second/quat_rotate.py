import torch


def cross(a, b):
    return torch.linalg.cross(*torch.broadcast_tensors(a, b))


class QuatRotate(torch.autograd.Function):
    """Rotate vectors by unit quaternions (w, x, y, z): v + 2w u x v + 2 u x (u x v)."""

    @staticmethod
    def forward(q, v):
        w, u = q[..., :1], q[..., 1:]
        t = 2 * cross(u, v)
        return v + w * t + cross(u, t)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        q, v = ctx.saved_tensors
        w, u = q[..., :1], q[..., 1:]
        grad_q = grad_v = None
        if ctx.needs_input_grad[0]:
            dw = 2 * (grad * cross(u, v)).sum(-1, keepdim=True)
            uv = (u * v).sum(-1, keepdim=True)
            gu = (grad * u).sum(-1, keepdim=True)
            gv = (grad * v).sum(-1, keepdim=True)
            du = 2 * w * cross(v, grad) + 2 * (grad * uv + v * gu - 2 * u * gv)
            grad_q = torch.cat([dw, du], -1).sum_to_size(q.shape)
        if ctx.needs_input_grad[1]:
            t = 2 * cross(u, grad)
            grad_v = (grad - w * t + cross(u, t)).sum_to_size(v.shape)
        return grad_q, grad_v


function = QuatRotate.apply
wrt = ("q", "v")


def calls():
    g = torch.Generator().manual_seed(103)
    q = torch.nn.functional.normalize(torch.randn(5, 1, 4, generator=g, dtype=torch.float64), dim=-1)
    v = torch.randn(5, 6, 3, generator=g, dtype=torch.float64)
    return [((q, v), {}), ((q[0, 0], v[0]), {}), ((q, v[0]), {})]


def primal(q, v):
    w, x, y, z = q.unbind(-1)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    R = torch.stack([torch.stack(row, -1) for row in rows], -2)
    return (R @ v.unsqueeze(-1)).squeeze(-1)


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
