"""What a module does in evaluation that it should not is said once, by the law of evaluation."""

from __future__ import annotations

import torch
from torch import nn

from gradspec import ModuleCase, ModuleSpec, verify
from gradspec.findings import findings
from gradspec.laws import LAWS


class Restless(nn.Module):
    """Its average moves in evaluation, too."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, dtype=torch.float64))
        self.register_buffer("average", torch.ones(3, dtype=torch.float64))

    def forward(self, x):
        with torch.no_grad():
            self.average.mul_(0.9).add_(0.1 * x.square().mean(0))
        return x * self.weight / self.average.clone().sqrt()


def cases(make):
    yield ModuleCase(name="rows", args=(), inputs=(make(4, 3),), output=(3,))


def test_copies_and_rows_follow_from_what_moves_in_evaluation():
    spec = ModuleSpec(name="restless", module=Restless, wrt=("x",), cases=cases)
    laws = [law for law in LAWS if law.name in ("copies", "evaluation_mode", "batch_independence")]
    (one,) = findings(verify([spec], laws, isolate=False))

    assert one.verdict.law == "evaluation_mode"
    assert {"copies", "batch_independence"} <= set(one.follows)
