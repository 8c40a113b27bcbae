"""The logarithm of the probability of a class, without keeping the probabilities."""

import torch
from kornia.losses.focal import _TargetLogSoftmax

from gradspec import Case, FunctionSpec


def chosen(logits, target, valid):
    kept = logits if valid is None else torch.where(valid, logits, 0.0)
    return kept.log_softmax(1).gather(1, target)


def cases(make):
    target = torch.tensor([[[0, 2]], [[1, 1]]])
    yield Case(make(2, 3, 2), target, None, name="all")
    yield Case(make(2, 3, 2), target, torch.tensor([[[True, False]], [[True, True]]]), name="one invalid")


RIGHT = FunctionSpec(_TargetLogSoftmax.apply, chosen, cases=cases)


class Unmasked(_TargetLogSoftmax):
    @staticmethod
    def forward(ctx, logits, target, valid):
        y = _TargetLogSoftmax.forward(ctx, logits, target, valid)
        x, target, _, *rest = ctx.to_save
        ctx.save_for_backward(x, target, None, *rest)
        return y


WRONG = RIGHT.for_(Unmasked.apply)
