"""Compiles and exports a function when it is imported: what a first compilation imports is then there in every fork.

Each check runs in a fork, and a fork of a process that has never compiled pays 1.5 seconds of imports for its first
compilation.
"""

import gc

import torch


class _Sine(torch.nn.Module):
    def forward(self, x):
        return x.sin()


def _warm():
    x = torch.ones(2, requires_grad=True)
    torch.compile(torch.sin, fullgraph=True, backend="aot_eager")(x).sum().backward()
    torch.export.export(_Sine(), (x,))
    torch._dynamo.reset()
    gc.freeze()  # a search for cycles would copy into each fork whatever it touches


_warm()
