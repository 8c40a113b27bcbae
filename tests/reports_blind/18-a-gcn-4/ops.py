"""Graph layer with a learned adjacency, which is detached: its two weights are never trained."""

from torch import Tensor, nn


class AdaptiveGraphLayer(nn.Module):
    def __init__(self, width: int = 3, hidden: int = 2) -> None:
        super().__init__()
        self.phi = nn.Linear(width, hidden, bias=False)
        self.theta = nn.Linear(width, hidden, bias=False)
        self.out = nn.Linear(width, width)

    def adjacency(self, x: Tensor) -> Tensor:
        return (self.phi(x) @ self.theta(x).mT).softmax(-1)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.adjacency(x).detach() @ x)


class AdaptiveGraphLayerMended(AdaptiveGraphLayer):
    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.adjacency(x) @ x)
