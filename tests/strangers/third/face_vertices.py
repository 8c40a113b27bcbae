import torch


class GatherFaces(torch.autograd.Function):
    @staticmethod
    def forward(ctx, vertices, faces):
        ctx.save_for_backward(faces)
        ctx.count = vertices.shape[0]
        return vertices[faces]

    @staticmethod
    def backward(ctx, grad):
        (faces,) = ctx.saved_tensors
        out = grad.new_zeros(ctx.count, grad.shape[-1])
        out[faces] = grad
        return out, None


def face_vertices(vertices, faces):
    """vertices (V, 3), faces (F, 3) of indices -> corners (F, 3, 3)."""
    return GatherFaces.apply(vertices, faces)


function = face_vertices
wrt = ("vertices",)


def calls():
    g = torch.Generator().manual_seed(330)
    v = torch.randn(6, 3, generator=g, dtype=torch.float64)
    apart = torch.tensor([[0, 1, 2], [5, 4, 3]])
    tetra = torch.tensor([[0, 1, 2], [0, 3, 1], [0, 2, 3], [1, 3, 2]])
    return [((v, apart), {}), ((v[:4], tetra), {})]


def primal(vertices, faces):
    return torch.nn.functional.one_hot(faces, len(vertices)).to(vertices) @ vertices


def show():
    off = []
    for (v, f), _ in calls():
        v.requires_grad_()
        (mine,) = torch.autograd.grad(function(v, f).sum(), v)
        (true,) = torch.autograd.grad(primal(v, f).sum(), v)
        off.append((mine - true).abs().max().item())
    return off[0] == 0 and off[1] > 0.5


TRUTH = {
    "sound": False,
    "defect": "backward assigns at the indices instead of adding: of a vertex that several faces share only one "
    "gradient is kept.",
    "rank": "wrong",
    "names": ["duplicate", "repeated", "index", "indices", "accumulate", "gradient of vertices"],
    "first_law": "the gradient of vertices",
}
