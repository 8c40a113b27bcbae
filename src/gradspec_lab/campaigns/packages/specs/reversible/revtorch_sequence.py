"""Reversible blocks, whose inputs are computed again from their outputs in backward."""

import torch
from revtorch.revtorch import ReversibleBlock, _ReversibleModuleFunction

from gradspec import FunctionSpec


def coupled(x, blocks, discard):
    x1, x2 = x.chunk(2, 1)
    for block in blocks:
        x1 = x1 + block.f_block(x2)
        x2 = x2 + block.g_block(x1)
    return torch.cat([x1, x2], 1)


def cases(make):
    blocks = torch.nn.ModuleList(ReversibleBlock(torch.nn.Tanh(), torch.nn.Softplus()) for _ in range(2))
    yield make(2, 4), blocks, False
    yield make(3, 2), blocks[:1], False


RIGHT = FunctionSpec(_ReversibleModuleFunction.apply, coupled, cases=cases)


class NotRestored(_ReversibleModuleFunction):
    @staticmethod
    def backward(ctx, y_bar):
        for block in reversed(ctx.reversible_blocks):
            _, y_bar = block.backward_pass(ctx.y, y_bar, True)
        return y_bar, None, None


WRONG = RIGHT.for_(NotRestored.apply)
