"""A memory bank: a Function whose context is called self, and a module that calls it."""

from torch import nn
from torch.autograd import Function


class LinearAverageOp(Function):
    @staticmethod
    def forward(self, x, y, memory, params):
        self.save_for_backward(x, y, memory, params)
        return x @ memory.T / params[0]

    @staticmethod
    def backward(self, gradOutput):  # noqa: N803
        _, _, memory, params = self.saved_tensors
        return gradOutput @ memory / params[0], None, None, None


class LinearAverage(nn.Module):
    def __init__(self, inputSize, outputSize, T=0.07, momentum=0.5):  # noqa: N803
        super().__init__()

    def forward(self, x, y):
        return LinearAverageOp.apply(x, y, self.memory, self.params)
