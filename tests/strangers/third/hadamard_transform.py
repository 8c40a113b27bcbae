import torch


class Hadamard(torch.autograd.Function):
    """Orthonormal fast Walsh-Hadamard transform over the last axis; its own transpose."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        n = x.shape[-1]
        if n < 1 or n & (n - 1):
            raise ValueError(f"the length must be a power of two, not {n}")
        y, h = x / n**0.5, 1
        while h < n:
            a, b = y.reshape(*x.shape[:-1], n // (2 * h), 2, h).unbind(-2)
            y = torch.stack([a + b, a - b], -2).reshape(x.shape)
            h *= 2
        return y

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        return Hadamard.apply(grad)


function = Hadamard.apply
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(368)
    x = torch.randn(3, 8, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x[0, :1],), {}), ((x[:, :4],), {})]


def primal(x):
    h = torch.ones(1, 1, dtype=x.dtype)
    while len(h) < x.shape[-1]:
        h = torch.kron(h, torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=x.dtype))
    return x @ h / x.shape[-1] ** 0.5


def check():
    try:
        function(torch.ones(6))
    except ValueError as e:
        return "power of two" in str(e)
    return False


TRUTH = {"sound": True, "defect": "", "rank": "sound", "names": [], "first_law": ""}
