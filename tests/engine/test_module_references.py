"""Modules beside a reference of their inputs: what they keep is held still, and their parameters are looked at too."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.autograd import Function

from gradspec import audit, check
from gradspec.findings import judge
from gradspec.law import Status


class Scale(Function):
    @staticmethod
    def forward(ctx, x, square, weight):
        ctx.save_for_backward(x, square.rsqrt(), weight)
        return x * square.rsqrt() * weight

    @staticmethod
    def backward(ctx, y_bar):
        x, scale, weight = ctx.saved_tensors
        return y_bar * scale * weight, None, (y_bar * x * scale).sum(0)


class WrongForTheWeight(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        x_bar, none, weight_bar = Scale.backward(ctx, y_bar)
        return x_bar, none, weight_bar / 4


class Running(nn.Module):
    """Scales by a running mean square as it was, and moves it."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, 3))
        self.register_buffer("square", torch.linspace(0.8, 3.0, 3))

    def forward(self, x):
        y = self.function.apply(x, self.square, self.weight)
        with torch.no_grad():
            self.square.lerp_(x.square().mean(0), 0.1)
        return y


class Bag(Function):
    @staticmethod
    def forward(ctx, indices, weight):
        ctx.save_for_backward(indices, weight)
        return weight[indices].mean(1)

    @staticmethod
    def backward(ctx, y_bar):
        indices, weight = ctx.saved_tensors
        rows = (y_bar / indices.shape[1])[:, None].expand(*indices.shape, -1)
        return None, torch.zeros_like(weight).index_put_((indices,), rows, accumulate=True)


class OverwritesInBag(Bag):
    @staticmethod
    def backward(ctx, y_bar):
        indices, weight = ctx.saved_tensors
        rows = (y_bar / indices.shape[1])[:, None].expand(*indices.shape, -1)
        return None, torch.zeros_like(weight).index_put_((indices,), rows)


class Words(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function, self.weight = function, nn.Parameter(torch.linspace(-1, 1, 21).reshape(7, 3))

    def forward(self, indices):
        return self.function.apply(indices, self.weight)


def running(x):
    return x * torch.linspace(0.8, 3.0, 3).to(x).rsqrt() * torch.linspace(0.5, 1.5, 3).to(x)


def words(indices):
    return torch.linspace(-1, 1, 21).reshape(7, 3)[indices].mean(1)


X = "(randn(5, 3, dtype=float32, requires_grad=True),)"
INDICES = "(tensor([[1, 4, 1], [0, 6, 4]]),)"


@pytest.mark.parametrize(
    ("module", "call", "reference", "said"),
    [
        (Running(Scale), X, running, ""),
        (Running(WrongForTheWeight), X, running, "gradient of `weight`"),
        (Words(Bag), INDICES, words, ""),
        (Words(OverwritesInBag), INDICES, words, "gradient of `weight`"),
    ],
    ids=["running", "running-wrong", "words", "words-wrong"],
)
def test_the_parameters_of_a_module_are_judged_beside_a_reference(module, call, reference, said):
    report = audit(module, [call], reference=reference, jobs=1).report
    failing = [one.found.verdict for one in judge(report).findings if one.fails]

    assert [one.law for one in failing] == (["surrogate"] if said else [])
    assert not said or said in failing[0].finding.message
    assert module.state_dict().get("square", torch.tensor([0.8]))[0] == pytest.approx(0.8)


class Padded(Function):
    @staticmethod
    def forward(ctx, weight, indices):
        ctx.save_for_backward(indices)
        ctx.rows = len(weight)
        return weight[indices]

    @staticmethod
    def backward(ctx, y_bar):
        (indices,) = ctx.saved_tensors
        y_bar = y_bar * (indices != 0)[:, None]
        return y_bar.new_zeros(ctx.rows, y_bar.shape[-1]).index_add_(0, indices, y_bar), None


class TrainsThePadding(Padded):
    @staticmethod
    def backward(ctx, y_bar):
        (indices,) = ctx.saved_tensors
        return y_bar.new_zeros(ctx.rows, y_bar.shape[-1]).index_add_(0, indices, y_bar), None


class Table(nn.Module):
    """An embedding with a padding, in float64 and without an input of floating point."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.arange(12, dtype=torch.float64).reshape(4, 3))

    def forward(self, indices):
        return self.function.apply(self.weight, indices)


@pytest.mark.parametrize(("function", "law"), [(Padded, ""), (TrainsThePadding, "vjp")])
def test_a_reference_that_reads_a_parameter_says_its_gradient_too(function, law):
    table = Table(function)
    found = audit(
        table,
        ["(tensor([1, 2, 0]),)"],
        reference=lambda indices: nn.functional.embedding(indices, table.weight, padding_idx=0),
        laws=["primal", "vjp", "surrogate", "layout"],
    )
    failing = [one.found.verdict for one in judge(found.report).findings if one.fails]

    assert [one.law for one in failing] == ([law] if law else [])
    assert not law or "gradient of `weight`" in failing[0].finding.message
    assert "primal" not in found.proposal  # of which the spec of a module knows nothing


class Names(Table):
    """Says which row gets no gradient, or only how many there are."""

    def __init__(self, *, padding_idx):
        super().__init__(Function)
        self.padding_idx, self.count = padding_idx, 0

    def forward(self, indices):
        row = 0 if self.padding_idx is None else self.padding_idx
        kept = (indices != row)[:, None] * self.weight[indices]
        return torch.where((indices == row)[:, None], self.weight[indices].detach(), kept)


@pytest.mark.parametrize(
    ("module", "asked"),
    [
        (nn.Embedding(4, 3, padding_idx=1), "row 1 of `weight`"),
        (nn.Sequential(nn.Embedding(4, 3, padding_idx=2), nn.Linear(3, 2)), "row 2 of `0.weight`"),
        (Names(padding_idx=0), "row 0 of `weight`"),
        (Names(padding_idx=None), ""),  # `count` is 0 too, and another count leaves out the same row
    ],
)
def test_a_row_without_a_gradient_is_asked_about_where_the_module_names_it(module, asked):
    (verdict,) = audit(module, ["(tensor([0, 1, 2]),)"], laws=["surrogate"]).report.verdicts

    assert verdict.status is (Status.QUESTION if asked else Status.BROKEN)
    assert asked in verdict.finding.message
    assert "padding_idx` names" in verdict.finding.message or not asked


def test_a_reference_finds_the_numbers_of_the_call_in_the_module():
    """float32 parameters, float64 inputs, and other rows of the parameters under vmap."""
    linear = nn.Linear(3, 2)
    laws = ["primal", "vjp", "vmap"]
    found = audit(linear, ["(randn(4, 3),)"], reference=lambda x: x @ linear.weight.T + linear.bias, laws=laws)

    assert [one.status for one in found.report.verdicts] == [Status.HOLDS] * 3
    assert linear.weight.dtype is torch.float32
    assert linear.weight.grad is None


@pytest.mark.parametrize("is_right", [True, False])
def test_one_call_is_held_to_it_too(is_right):
    """As for an embedding, whose input nobody differentiates."""
    table = Table(Padded if is_right else TrainsThePadding)
    indices = torch.tensor([1, 2, 0])

    def reference(given):
        return nn.functional.embedding(given, table.weight, padding_idx=0)

    assert check(table, indices, primal=reference, raise_exception=False) is is_right


def test_vmap_leaves_the_parameters_that_a_reference_does_not_read():
    linear, own = nn.Linear(3, 2).double(), nn.Linear(3, 2).double()
    own.load_state_dict(linear.state_dict())
    found = audit(linear, ["(randn(4, 3),)"], reference=own, laws=["vmap"])

    assert [one.status for one in found.report.verdicts] == [Status.HOLDS]


class Stale(Function):
    @staticmethod
    def forward(ctx, weight, scale):
        ctx.scale = scale
        return weight * scale

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar * ctx.scale, None


class Counts(nn.Module):
    """Reads a buffer in backward that the next call writes to."""

    def __init__(self, kept):
        super().__init__()
        self.kept = kept
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, 3, dtype=torch.float64))
        self.register_buffer("scale", torch.ones((), dtype=torch.float64))

    def forward(self, x):
        self.scale.add_(1)
        return x * Stale.apply(self.weight, self.kept(self.scale))


@pytest.mark.parametrize("reference", [None, lambda x: 2 * x * torch.linspace(0.5, 1.5, 3, dtype=torch.float64)])
@pytest.mark.parametrize(("kept", "law"), [(torch.clone, ""), (lambda scale: scale, "interleaved")])
def test_a_buffer_that_the_next_call_moves_is_kept_for_backward(kept, law, reference):
    found = audit(Counts(kept), ["(randn(2, 3),)"], reference=reference, laws=["surrogate", "interleaved"])
    failing = [one.found.verdict for one in judge(found.report).findings if one.fails]

    assert [one.law for one in failing] == ([law] if law else [])
    assert not law or failing[0].finding.likely.startswith("backward reads `scale`, which the next call writes to")
