"""A stand-in for a CUDA graph on a machine without a device: it records the operations of a call, and runs these again.

As a graph does, it keeps the memory of each tensor and every number that Python gave, and runs no Python of the
function. It refuses what a capture refuses: an operation whose result Python reads. It cannot show what only CUDA does:
a kernel that waits, or that the driver refuses; memory and streams.
"""

from torch import Tensor, no_grad
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from gradspec.laws.tensor.support._captured import WARM_UP
from gradspec.laws.tensor.support._reads import _reads
from gradspec.laws.tensor.support._written import storage_of

REFUSED = "operation not permitted when stream is capturing"


def recorded(call, *, refuses=_reads):
    """Run a call as `captured` does, its operations recorded; see `Capture`."""
    for _ in range(WARM_UP):
        call()
    recording = _Recording(refuses)
    with recording:
        static = call()
    return static, recording.replay


class _Recording(TorchDispatchMode):
    def __init__(self, refuses):
        super().__init__()
        self.refuses, self.steps = refuses, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.refuses(func, args, kwargs):
            raise RuntimeError(f"{func}: {REFUSED}")
        made = func(*args, **kwargs)
        self.steps.append((func, args, kwargs, made))
        return made

    @no_grad()
    def replay(self):
        for func, args, kwargs, made in self.steps:
            again = func(*args, **kwargs)
            for mine, new in zip(tree_leaves(made), tree_leaves(again), strict=True):
                if isinstance(mine, Tensor) and storage_of(mine) != storage_of(new):  # else a view, or in place
                    mine.copy_(new)
