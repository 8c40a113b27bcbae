import torch


class QuatToMatrix(torch.autograd.Function):
    """Rotation matrices (N, 3, 3) of unit quaternions (N, 4), real part first."""

    @staticmethod
    def forward(ctx, quat):
        ctx.save_for_backward(quat)
        w, x, y, z = quat.unbind(-1)
        return torch.stack(
            [
                1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
                2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
            ],
            -1,
        ).reshape(-1, 3, 3)  # fmt: skip

    @staticmethod
    def backward(ctx, grad):
        (quat,) = ctx.saved_tensors
        w, x, y, z = quat.unbind(-1)
        g00, g01, g02, g10, g11, g12, g20, g21, g22 = grad.reshape(-1, 9).unbind(-1)
        dw = x * (g21 - g12) + y * (g02 - g20) + z * (g10 - g01)
        dx = y * (g01 + g10) + z * (g02 + g20) + w * (g21 - g12) - 2 * x * (g11 + g22)
        dy = x * (g01 + g10) + z * (g12 + g21) + w * (g20 - g02) - 2 * y * (g00 + g22)
        dz = x * (g02 + g20) + y * (g12 + g21) + w * (g10 - g01) - 2 * z * (g00 + g11)
        return 2 * torch.stack([dw, dx, dy, dz], -1)


def quat_to_matrix(quat):
    return QuatToMatrix.apply(quat)


function = quat_to_matrix
wrt = ("quat",)


def calls():
    g = torch.Generator().manual_seed(122)
    q = torch.nn.functional.normalize(torch.randn(5, 4, generator=g, dtype=torch.float64), dim=-1)
    return [((q,), {}), ((q[:1],), {})]


def primal(quat):
    w, u = quat[:, 0], quat[:, 1:]
    cross = torch.linalg.cross(u[:, None], torch.eye(3, dtype=quat.dtype).expand(len(u), 3, 3)).mT
    outer = u[:, :, None] * u[:, None, :]
    eye = torch.eye(3, dtype=quat.dtype)
    return (1 - 2 * u.square().sum(-1))[:, None, None] * eye + 2 * outer + 2 * w[:, None, None] * cross


def show():
    (q,), _ = calls()[0]
    q.requires_grad_()
    w = torch.arange(9.0, dtype=q.dtype).reshape(3, 3)
    (mine,) = torch.autograd.grad((w * function(q)).sum(), q)
    (true,) = torch.autograd.grad((w * primal(q)).sum(), q)
    off = (mine - true).abs().amax(0)
    return off[2] > 1e-2 and off[[0, 1, 3]].max() < 1e-12


TRUTH = {
    "sound": False,
    "defect": "In the gradient of the y component the term with w has the wrong sign.",
    "rank": "wrong",
    "names": ["sign", "gradient of quat", "quat", "y component"],
    "first_law": "the gradient of quat",
}
