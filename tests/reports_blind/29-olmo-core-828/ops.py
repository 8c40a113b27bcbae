"""Checkpointed block with dropout: the state of the random numbers is not kept, so backward draws another mask."""

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


class DropoutBlock(nn.Module):
    preserve_rng_state = False

    def __init__(self, width: int = 4, p: float = 0.5) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Dropout(p), nn.Linear(width, width))

    def forward(self, x: Tensor) -> Tensor:
        return x + checkpoint(self.inner, x, use_reentrant=False, preserve_rng_state=self.preserve_rng_state)


class DropoutBlockMended(DropoutBlock):
    preserve_rng_state = True
