"""Linear layer with a switch for its bias: switched on, the bias is drawn and never trained."""

import torch
from torch import Tensor, nn


class Linear(nn.Module):
    def __init__(self, into: int = 3, out: int = 2, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(into, out).uniform_(-1, 1))
        self.bias = nn.Parameter(torch.zeros(1, out), requires_grad=not bias)
        if bias:
            nn.init.xavier_uniform_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight + self.bias


class LinearMended(nn.Module):
    def __init__(self, into: int = 3, out: int = 2, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(into, out).uniform_(-1, 1))
        self.bias = nn.Parameter(torch.zeros(1, out), requires_grad=bias)
        if bias:
            nn.init.xavier_uniform_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight + self.bias
