"""What an audit says of a wrong gradient without a spec: its elements, beside the differences of forward, and why."""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from engine.test_audit_questions import made
from gradspec import audit
from gradspec.law import Status
from gradspec.laws import LAWS

SURROGATE = [law for law in LAWS if law.name == "surrogate"]
DRAWS = next(law for law in LAWS if law.name == "declared_draws")


def finding(function, case, laws=SURROGATE):
    (verdict,) = audit(function, [case], laws=laws).report.verdicts
    return verdict.finding


def positive_definite(g, a, b):
    of_b = torch.linalg.solve(a, g)
    of_a = -of_b @ torch.linalg.solve(a, b).mT
    return 0.75 * (of_a + of_a.mT) / 2, of_b


def solved(a, b):
    return torch.cholesky_solve(b, torch.linalg.cholesky((a + a.mT) / 2))


def test_a_function_that_refuses_arguments_far_away_is_judged_near_them():
    call = "(2 * eye(3) + 0.1 * ones(3, 3), randn(3, 2))"
    wrong = finding(made(solved, positive_definite), call)

    assert wrong.status is Status.BROKEN
    assert "is off by the factor 0.75, and right for `args[1]`" in wrong.likely


def of_probabilities(p):
    if abs(p.sum() - 1) > 1e-9:
        raise ValueError("no probabilities")
    return p.log()


def test_a_function_that_refuses_every_step_is_no_verdict_in_its_favour():
    said = finding(made(of_probabilities, lambda g, p: 2 * g / p), "randn(5).softmax(0)")

    assert said.status is Status.INCONCLUSIVE
    assert "a small step away the function raises ValueError: no probabilities" in said.message


def both(q, k):
    return q @ k.T, (q @ k.T).logsumexp(1)


@pytest.mark.parametrize(
    ("function", "case", "words"),
    [
        (
            made(lambda x, w: x @ w, lambda g, x, w: (g @ w, x.T @ g)),
            "(randn(3, 3), randn(3, 3))",
            "is transposed in the gradient of `args[0]`: a transpose is missing",
        ),
        (
            made(both, lambda g, h, q, k: (g @ k, g.T @ q)),
            "(randn(2, 3), randn(4, 3))",
            "backward ignores the cotangent of output 1: what comes from it is missing",
        ),
        (
            made(lambda x: x.square().sum(1), lambda g, x: 2 * x * g[0]),
            "(randn(4, 3),)",
            "backward takes its first number for all",
        ),
        (
            made(lambda x: x.clamp(-1, 1).exp(), lambda g, x: g * x.clamp(-1, 1).exp()),
            "(randn(40),)",
            "right but where the gradient should be 0: a mask is missing in backward",
        ),
        (
            made(lambda x: x.softmax(0), lambda g, x: g * x.softmax(0)),
            "(randn(5),)",
            "is added all along dimension 0: a term that is the same there is missing, or wrong",
        ),
    ],
)
def test_the_cause_is_named_as_with_a_spec(function, case, words):
    said = finding(function, case)

    assert said.status is Status.BROKEN
    assert said.message.startswith("backward does not apply the derivative of what forward computes: gradient of ")
    assert words in said.likely
    assert said.index
    assert said.expected.endswith(" by central differences")


def test_the_numbers_are_those_of_the_derivative():
    said = finding(made(lambda x: x**3, lambda g, x: 3 * x**2 * g + (x > 0)), "(tensor([0.5, -1.5]),)")

    assert "differs in 1 of 2 elements" in said.message
    assert said.index == "[0]"
    assert float(said.got) - float(said.expected.split()[0]) == pytest.approx(1, rel=1e-6)


def test_of_many_numbers_a_direction_is_all_that_is_said():
    said = finding(made(lambda x: x**2, lambda g, x: 3 * x * g), "(randn(600),)")

    assert said.message == "backward does not apply the derivative of what forward computes"
    assert said.likely == "off by the factor 1.5"


def test_a_gradient_that_is_nan_in_float32_alone_is_said_so():
    spike = made(lambda x: (x > 0).to(x.dtype), lambda g, x: g * (-25 * x).exp() / (1 + (-25 * x).exp()) ** 2)
    said = finding(spike, "(tensor([-5.0, 0.1]),)", [law for law in LAWS if law.name == "precision"])

    assert said.status is Status.BROKEN
    assert said.message == "gradient of `x` is NaN in float32 in 1 of 2 elements, and the value is finite".replace(
        "`x`", "`args[0]`"
    )
    assert said.expected.endswith(" in float64")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 2))
        self.keeps = True

    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=False, preserve_rng_state=self.keeps)


def test_a_block_that_backward_runs_again_has_the_state_of_its_call():
    asked = [law for law in LAWS if law.name in ("surrogate", "inputs_untouched", "retained_graph")]
    assert not audit(Block(), ["(randn(5, 4),)"], laws=asked).report.failures

    wrong = Block()
    wrong.keeps = False
    found = {v.law: v.finding for v in audit(wrong, ["(randn(5, 4),)"], laws=[*SURROGATE, DRAWS]).report.failures}
    assert found["declared_draws"].message.startswith("backward draws noise anew")
    assert found["surrogate"].follows == "declared_draws"


class BesideItsSize(torch.autograd.Function):
    """A product, whose gradient is wrong for the second factor, and its size, which has none."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        sizes = (x * w).abs()
        ctx.mark_non_differentiable(sizes)
        return x * w, sizes

    @staticmethod
    def backward(ctx, y_bar, _):
        x, w = ctx.saved_tensors
        return y_bar * w, 3 * y_bar * x


def test_an_output_without_a_gradient_has_no_part_in_the_differences():
    said = finding(BesideItsSize, "(randn(3), randn(3))")

    assert said.argument.startswith("gradient of `w`")
    assert said.likely.startswith(
        "the gradient of `w` is off by the factor 3, and right for `x`; right with `y_bar` in place"
    )
