import torch


class MyReLU(torch.autograd.Function):
    """
    We can implement our own custom autograd Functions by subclassing
    torch.autograd.Function and implementing the forward and backward passes.
    """

    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return input.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        grad_output[input <= 0] = 0
        return grad_output


relu = MyReLU.apply
function = relu
wrt = ("input",)


def calls():
    g = torch.Generator().manual_seed(38)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x.reshape(2, 2, 3),), {})]


def primal(input):
    return torch.relu(input)


def show():
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    g = torch.ones(2)
    torch.autograd.grad(function(x), x, g)
    return g.tolist() == [0.0, 1.0]


TRUTH = {
    "sound": False,
    "defect": "backward changes grad_output in place, which other branches of the graph or the caller may still use.",
    "rank": "wrong",
    "names": ["in place", "in-place", "grad_output", "incoming gradient", "modif", "mutat"],
    "first_law": "backward leaves grad_output alone",
}
