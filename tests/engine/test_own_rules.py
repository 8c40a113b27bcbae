"""A rule that a Function writes for a transform is meant to work: an audit asks about it."""

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.findings import judge


class Normed(Function):
    """Divides each row by its norm, with a rule that finds the batch wherever it is."""

    @staticmethod
    def forward(x):
        return torch.nn.functional.normalize(x, dim=-1), x.norm(dim=-1, keepdim=True)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*output)

    @staticmethod
    def backward(ctx, y_bar, _):
        y, norm = ctx.saved_tensors
        return (y_bar - y * (y_bar * y).sum(-1, keepdim=True)) / norm

    @staticmethod
    def vmap(info, in_dims, x):
        return Normed.apply(x.movedim(in_dims[0], 0)), (0, 0)


class NormedInPlace(Normed):
    @staticmethod
    def vmap(info, in_dims, x):
        return NormedInPlace.apply(x), (in_dims[0], in_dims[0])


class Doubled(Function):
    @staticmethod
    def forward(x):
        return 2 * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, y_bar):
        return 2 * y_bar

    @staticmethod
    def jvp(ctx, x_dot):
        return 2 * x_dot


class DoubledOnce(Doubled):
    @staticmethod
    def jvp(ctx, x_dot):
        return x_dot.clone()


def normed(x):
    return Normed.apply(x)[0]


def normed_in_place(x):
    return NormedInPlace.apply(x)[0]


@pytest.mark.parametrize(
    ("function", "laws"),
    [(normed, set()), (normed_in_place, {"vmap"}), (Doubled, set()), (DoubledOnce, {"jvp", "adjoint"})],
)
def test_a_rule_of_its_own_that_is_silently_wrong_fails_an_audit(function, laws):
    judged = judge(audit(function, ["(randn(4, 3),)"], laws=["surrogate", "vmap", "jvp", "adjoint"]).report)

    failed = {verdict.law for one in judged.findings if one.fails for verdict in one.asked}
    assert (failed <= laws, bool(failed)) == (True, bool(laws))


def test_a_rule_that_takes_the_batch_to_be_first_is_told_of_a_function_that_calls_another():
    (verdict,) = audit(normed_in_place, ["(randn(4, 3),)"], laws=["vmap"]).report.verdicts

    assert verdict.finding.likely.startswith("right where the batch is dimension 0")
