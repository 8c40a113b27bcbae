import torch

CORNERS = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])


def _corners(x, resolution, size):
    """Table rows and bilinear weights of the four grid corners around every point."""
    pos = x * resolution
    low = pos.floor()
    frac = (pos - low).unsqueeze(1)
    corner = low.long().unsqueeze(1) + CORNERS.to(x.device)
    rows = (corner[..., 0] ^ corner[..., 1] * 2654435761) % size
    return rows, torch.where(CORNERS.to(x.device) == 1, frac, 1 - frac).prod(-1)


class HashEncode(torch.autograd.Function):
    """Multiresolution hash encoding (Instant-NGP) in 2D; trains the tables, the points are data."""

    @staticmethod
    def forward(ctx, x, resolutions, *tables):
        ctx.save_for_backward(x)
        ctx.resolutions, ctx.shapes = resolutions, [t.shape for t in tables]
        out = []
        for res, table in zip(resolutions, tables):
            rows, weights = _corners(x, res, len(table))
            out.append((weights.unsqueeze(-1) * table[rows]).sum(1))
        return torch.cat(out, -1)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        parts = grad.split([s[1] for s in ctx.shapes], -1)
        grads = []
        for res, shape, g in zip(ctx.resolutions, ctx.shapes, parts):
            rows, weights = _corners(x, res, shape[0])
            wg = (weights.unsqueeze(-1) * g.unsqueeze(1)).flatten(0, 1)
            grads.append(g.new_zeros(shape).index_add(0, rows.flatten(), wg))
        return None, None, *grads


def hash_encode(x, tables, resolutions=(4, 9)):
    return HashEncode.apply(x, resolutions, *tables)


function = hash_encode
wrt = ("tables",)


def calls():
    g = torch.Generator().manual_seed(113)
    x = torch.rand(6, 2, generator=g, dtype=torch.float64)
    tables = [torch.randn(16, 2, generator=g, dtype=torch.float64) for _ in range(3)]
    return [((x, tables[:2]), {}), ((x, tables, (2, 3, 30)), {})]


def primal(x, tables, resolutions=(4, 9)):
    out = []
    for res, table in zip(resolutions, tables):
        rows, weights = _corners(x, res, len(table))
        out.append(torch.einsum("nk,nkf->nf", weights, torch.nn.functional.embedding(rows, table)))
    return torch.cat(out, 1)


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
