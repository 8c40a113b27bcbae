"""What an audit says of a gradient that does not arrive: a finding, first of all, or a question."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.autograd import Function
from torch.utils._pytree import tree_leaves

from gradspec import CheckError, FunctionSpec, Supports, audit, check, read_case, stand_in, verify
from gradspec.findings import findings, judge
from gradspec.law import Rank, Status
from gradspec.laws import LAWS
from gradspec.profile import load_profile

CHEAP = [law for law in LAWS if law.name in ("surrogate", "cotangents_untouched", "retained_graph", "vjp")]
X, W = "randn(4, 3)", "randn(3)"


class Product(Function):
    """The gradient of `w` is None; with `zeros`, zeros."""

    zeros = False

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @classmethod
    def backward(cls, ctx, y_bar):
        _, w = ctx.saved_tensors
        return y_bar * w, torch.zeros_like(w) if cls.zeros else None


ANGLES = "randn(2, 3, 8, dtype=bfloat16), randn(3, 4, dtype=bfloat16), randn(3, 4, dtype=bfloat16)"


class Turned(Function):
    """A rotary embedding: no gradient for its tables."""

    @staticmethod
    def forward(ctx, x, cos, sin):
        ctx.save_for_backward(cos, sin)
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    @staticmethod
    def backward(ctx, y_bar):
        cos, sin = ctx.saved_tensors
        a, b = y_bar.chunk(2, -1)
        return torch.cat((a * cos + b * sin, b * cos - a * sin), -1), None, None


class Zeros(Product):
    zeros = True


class Overwrites(Product):
    @classmethod
    def backward(cls, ctx, y_bar):
        _, w = ctx.saved_tensors
        return y_bar.mul_(w), None


class Spike(Function):
    """A dead surrogate."""

    @staticmethod
    def forward(ctx, x):
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, y_bar):
        return torch.zeros_like(y_bar)


class Threshold(Function):
    """The right gradient of `t` is zero nearly everywhere."""

    @staticmethod
    def forward(ctx, x, t):
        ctx.save_for_backward(x, t)
        return torch.where(x > t, x, 0)

    @staticmethod
    def backward(ctx, y_bar):
        x, t = ctx.saved_tensors
        return torch.where(x > t, y_bar, 0), None


class Reversed(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, y_bar):
        return -y_bar


class ReversedLayer(nn.Module):
    def forward(self, x):
        return x

    def backward(self, y_bar):
        return -y_bar


class SquaredLayer(nn.Module):
    """Its backward, which nobody calls, says what torch does."""

    def forward(self, x):
        self.x = x.detach()
        return x.square()

    def backward(self, y_bar):
        return 2 * self.x * y_bar


class Scaled(nn.Module):
    def __init__(self, read):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([0.5, 2.0, -1.0]))
        self.read = read

    def forward(self, x):
        return self.read(x, self.weight)


class Ctx:
    def save_for_backward(self, *tensors):
        """Keep nothing."""


@torch.no_grad()
def without_graph(x):
    return x.sin()


def audited(function, *cases, **how):
    return audit(function, list(cases), laws=CHEAP, **how)


def said(found):
    """Return the status of the law that tells it, and what it says in all."""
    (verdict,) = found.report.of(law="surrogate")
    return verdict.status, f"{verdict.finding.message} {verdict.finding.likely}"


@pytest.mark.parametrize(
    ("function", "case", "how", "words"),
    [
        (Product, f"({X}, randn(3, requires_grad=True))", {}, "backward returns no gradient for `w`, and the output"),
        (Product, f"({X}, {W})", {"wrt": ("w",)}, "backward returns no gradient for `w`, and the output moves with it"),
        (Product, (torch.randn(2, 3), nn.Parameter(torch.rand(3))), {}, "backward returns no gradient for `w`"),
        (
            Zeros,
            f"({X}, randn(3, requires_grad=True))",
            {},
            "backward returns zeros everywhere for `w`, and the output",
        ),
        (Spike, "(randn(6, requires_grad=True),)", {}, "backward returns zeros everywhere for `x`, and the output"),
        (
            Threshold,
            f"({X}, {W})",
            {"wrt": ("t",)},
            "backward returns no gradient for `t`, and the output moves with it",
        ),
        (
            Scaled(Product.apply),
            f"({X},)",
            {},
            "backward returns no gradient for `weight`, and the output moves with it",
        ),
        (Scaled(lambda x, w: x * w.data), f"({X},)", {}, "no gradient reaches `weight`"),
        (
            lambda x: x.detach() ** 2,
            f"({X},)",
            {},
            "the graph is cut by detach() (test_audit_lost.py:",
        ),
        (
            lambda x: x.data**2,
            f"({X},)",
            {},
            "the graph is cut by .data (test_audit_lost.py:",
        ),
        (
            lambda x, s: x * s.item(),
            f"({X}, tensor(0.5, requires_grad=True))",
            {},
            "cut by item() (test_audit_lost.py:",
        ),
        (without_graph, f"({X},)", {}, "the graph is cut by no_grad(): without it a gradient arrives"),
        (ReversedLayer(), f"({X},)", {}, "torch never calls `ReversedLayer.backward`"),
        (nn.Sequential(nn.Linear(3, 3), ReversedLayer()), f"({X},)", {}, "torch never calls `ReversedLayer.backward`"),
        (lambda x: Reversed.forward(Ctx(), x), f"({X},)", {}, "`Reversed.forward` is called without `Reversed.apply`"),
    ],
)
def test_a_lost_gradient_is_broken(function, case, how, words):
    found = audited(function, case, **how)

    status, text = said(found)
    assert (status, words in text) == (Status.BROKEN, True), text
    (verdict,) = found.report.of(law="surrogate")
    assert verdict.finding.rank == Rank.WRONG
    assert findings(found.report)[0].verdict == verdict
    assert judge(found.report).fails


def test_it_is_the_first_of_all_findings():
    found = audited(Overwrites, f"({X}, {W})", wrt=["w"])

    assert [one.verdict.law for one in findings(found.report)] == ["surrogate", "cotangents_untouched"]


@pytest.mark.parametrize(
    ("function", "case", "words"),
    [
        (Product, f"({X}, {W})", "Is `w` trained? Backward returns no gradient for `w`, and the output moves with it."),
        (Zeros, f"({X}, {W})", "Is `w` trained? Backward returns zeros everywhere for `w`, and the output moves with"),
        (Turned, f"({ANGLES})", "Are `cos` and `sin` trained?"),
        (Spike, f"({X},)", "Is `x` trained? Backward returns zeros everywhere for `x`, and the output moves with it."),
        (
            lambda x, t: (x - t.detach()).square(),
            f"({X}, {X})",
            "The graph is cut by detach() (test_audit_lost.py:",
        ),
    ],
)
def test_what_is_not_marked_is_asked_about_once(function, case, words):
    found = audited(function, case)

    status, text = said(found)
    assert (status, words in text) == (Status.QUESTION, True), text
    assert "the option `wrt`" in text
    assert "the option `zero_gradient`" in text
    assert not judge(found.report).fails
    assert not any("no gradient" in remark for remark in found.remarks)


@pytest.mark.parametrize(
    ("function", "case", "how"),
    [
        (Product, f"({X}, {W})", {"zero_gradient": ("w",)}),
        (Product, f"(randn(4, 3, requires_grad=True), {W})", {}),
        (Product, f"({X}, {W})", {"wrt": ("x",)}),
        (Zeros, f"({X}, {W})", {"zero_gradient": ("w",)}),
        (Spike, f"({X},)", {"zero_gradient": ("x",)}),
        (Scaled(Product.apply), f"({X},)", {"zero_gradient": ("weight",)}),
        (Threshold, f"({X}, {W})", {}),
        (torch.relu, "(zeros(30),)", {}),
        (SquaredLayer(), f"({X},)", {}),
        (lambda *args: Product.apply(*args), f"(randn(4, 3, requires_grad=True), {W})", {}),
        (lambda *args: Product.apply(*args), f"({X}, {W})", {"wrt": ("args[0]",)}),
    ],
)
def test_what_is_answered_or_needs_no_answer_is_not_asked(function, case, how):
    found = audited(function, case, **how)

    assert said(found)[0] not in (Status.BROKEN, Status.QUESTION), said(found)


def test_of_several_tensors_in_one_argument_those_are_asked_about_that_are_marked():
    found = audit(lambda *args: Product.apply(*args), [f"({X}, {W})"], wrt=["args[0]"], name="product", laws=CHEAP)

    assert {v.status for v in found.report.verdicts} == {Status.HOLDS}
    assert "wrt=('args[0]',)" in found.proposal


def test_what_is_applied_is_not_called_by_itself():
    apply = Reversed.apply

    assert "without" not in said(audited(lambda x: apply(x).sin(), f"({X},)"))[1]


def normed(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))


def test_a_bias_that_a_normalisation_takes_away_is_no_finding():
    found = audit(normed(0), ["(randn(6, 3),)"], laws=[law for law in LAWS if law.cost == "ms"])

    assert {v.status for v in found.report.verdicts} & {Status.BROKEN, Status.VACUOUS, Status.QUESTION} == set()
    assert any("`0.bias`" in remark for remark in found.remarks)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (
            {"wrt": ("v",)},
            "wrt names 'v', and no call of Product has a floating-point tensor of this name: ",
        ),
        ({"zero_gradient": ("v",)}, "zero_gradient names 'v'"),
        ({"zero_gradient": ("x",)}, "zero_gradient names `x`, and backward gives it a gradient that is not zero"),
        ({"wrt": "w"}, "wrt is the text 'w': write a tuple of names, as ('w',)"),
        ({"wrt": ("w",), "zero_gradient": ("w",)}, "`w` is named by wrt and by zero_gradient"),
    ],
)
def test_a_name_that_is_none_is_refused(how, words):
    with pytest.raises(ValueError, match=r"names|named|text") as refused:
        audited(Product, f"({X}, {W})", **how)

    assert words in str(refused.value)


@pytest.mark.parametrize("function", [Product, lambda x, w: x * w])
def test_a_call_without_a_floating_point_tensor_is_refused(function):
    with pytest.raises(ValueError, match=r"no call of \S+ has a floating-point tensor"):
        audited(function, "(randint(0, 3, (2,)), randint(0, 3, (2,)))")


def test_what_a_proposal_does_not_know_of_a_lost_gradient_is_to_be_done():
    asked, marked = (audited(Product, call) for call in (f"({X}, {W})", f"({X}, randn(3, requires_grad=True))"))

    assert "# TODO: say whether `w` is trained" in asked.proposal
    assert any("whether `w` is trained" in remark for remark in asked.remarks_of_proposal)
    assert "TODO: say whether" not in marked.proposal


def test_a_tensor_of_a_list_is_named_as_it_is_written():
    found = audited(lambda xs: xs[0] * xs[1].detach(), "([randn(3), randn(3)],)", wrt=("xs[1]",))

    assert said(found)[0] is Status.BROKEN
    assert "no gradient reaches `xs[1]`" in said(found)[1]


def test_a_call_keeps_its_marks_and_no_law_sees_them():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    found = audited(torch.sin, (x,))

    assert x.requires_grad
    assert x.grad is None
    assert [t for t in tree_leaves(found.report.verdicts) if isinstance(t, torch.Tensor)] == []
    assert said(found)[0] is Status.HOLDS


def test_one_check_says_what_is_lost_and_what_is_asked():
    x, w = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((4, 3), (3,)))

    with pytest.raises(CheckError, match="backward returns no gradient for `w`, and the output moves with it"):
        check(Product, (x, w))
    assert check(Product, (x, w.detach()))
    with pytest.raises(CheckError, match="Is the gradient of `x` meant"):
        check(Reversed, x)
    assert check(Reversed, x, surrogate=lambda x: -x)


@pytest.mark.parametrize("seed", [259, 279, 326, 461])
def test_a_kink_close_by_hides_no_gradient_of_a_normalisation(seed):
    found = audit(normed(seed), ["(randn(6, 3),)"], laws=["surrogate"])

    assert said(found)[0] is Status.HOLDS


@pytest.mark.parametrize("call", ["(randn(2, requires_grad=True) + 1000,)", "(randn(2, requires_grad=True) - 40,)"])
def test_a_gradient_that_is_zero_where_a_function_saturates_is_not_lost(call):
    found = audit(torch.tanh, [call], laws=[law for law in LAWS if law.name == "surrogate"])
    assert not found.report.failures


class Exchanged(Function):
    """Returns the gradient of `x` at the place of `rows`."""

    @staticmethod
    def forward(ctx, x, rows, count):
        ctx.save_for_backward(rows)
        return x.new_zeros(count, x.shape[1]).index_add(0, rows, x)

    @staticmethod
    def backward(ctx, y_bar):
        (rows,) = ctx.saved_tensors
        return None, y_bar[rows], None


class Leaves(Exchanged):
    """Returns nothing for `x`, and zeros for `rows`."""

    @staticmethod
    def backward(ctx, y_bar):
        (rows,) = ctx.saved_tensors
        return None, torch.zeros_like(y_bar[rows]), None


class Quantile(Function):
    """Returns a gradient for the target, which may be a number of a class too, and none for `q`."""

    @staticmethod
    def forward(ctx, x, target, q):
        ctx.save_for_backward(target - x, q)
        return torch.maximum(q * (target - x), (q - 1) * (target - x))

    @staticmethod
    def backward(ctx, y_bar):
        off, q = ctx.saved_tensors
        slope = torch.where(off > 0, q, q - 1)
        return -y_bar * slope, y_bar * slope, None


ROWS = "(randn(5, 3), tensor([0, 1, 1, 2, 0]), 3)"


def test_a_gradient_at_the_place_of_an_argument_that_takes_none_is_wrong_though_nothing_is_marked():
    status, words = said(audited(Exchanged, ROWS))

    assert status is Status.BROKEN
    assert "backward returns the gradient of `x` at the place of `rows`, which takes none" in words


def test_another_gradient_of_the_same_shape_is_none_that_stands_at_the_wrong_place():
    status, words = said(audited(Quantile, "(randn(4, 3), randint(0, 3, (4, 3)), rand(4, 3))"))

    assert status is Status.QUESTION
    assert "at the place of" not in words


def test_zeros_at_another_place_are_a_question():
    status, words = said(audited(Leaves, ROWS))

    assert status is Status.QUESTION
    assert "at the place of" not in words


def slope(x):
    """A gradient penalty: it differentiates by a tensor of its own."""
    with torch.enable_grad():
        x = x.clone() if x.requires_grad else x.detach().requires_grad_()
        (found,) = torch.autograd.grad(x.pow(3).sum(), x, create_graph=True)
    return found.norm()


HELD = torch.ones(3, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize(("function", "rank"), [(slope, "waste"), (lambda x: (x * HELD).sum(), "wrong")])
def test_a_tensor_of_the_call_that_requires_grad_is_no_hidden_parameter(function, rank):
    found = audit(function, ["(randn(3),)"], name="found", laws=["needs_input_grad"])
    (verdict,) = found.report.verdicts

    assert verdict.finding.message.startswith("the output requires grad though no input does")
    assert verdict.finding.rank == rank


class Middle(Function):
    """The middle of three numbers, between two that are one: what is written last is all that there is."""

    @staticmethod
    def forward(ctx, x):
        values, order = x.sort()
        ctx.shape = x.shape
        ctx.save_for_backward(order[..., 1:2])
        return values[..., 1]

    @staticmethod
    def backward(ctx, y_bar):
        (order,) = ctx.saved_tensors
        g = y_bar.unsqueeze(-1)
        x_bar = torch.zeros(ctx.shape, dtype=g.dtype).scatter(-1, order, g)
        return x_bar.scatter(-1, order, 0 * g)


def test_the_line_that_makes_a_gradient_zero_is_named():
    (found,) = audit(Middle, ["(randn(4, 3),)"], laws=["surrogate"]).report.violations

    assert found.finding.message.startswith("backward returns zeros everywhere for `x`")
    assert "scatter_add(-1, order, 0 * g)` in place of `x_bar.scatter(" in found.finding.likely
    assert "test_audit_lost.py:" in found.finding.likely


@pytest.mark.parametrize("laws", [["surrogate"], None])
def test_with_a_reference_the_law_that_a_command_repeats_judges_backward_too(laws):
    profile = replace(load_profile("quick"), laws=("surrogate",)) if laws is None else None
    report = audit(Zeros, [f"({X}, {W})"], laws=laws, profile=profile, reference=lambda x, w: x * w).report

    assert [v.law for v in report.violations] == ["vjp"]


class AsksForAnother(Function):
    """Asks whether `x` requires a gradient where it makes that of `w`."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, y_bar):
        x, w = ctx.saved_tensors
        asked = ctx.needs_input_grad[0]
        return (y_bar * w if asked else None), (y_bar * x if asked else None)


def test_another_argument_that_decides_about_a_lost_gradient_is_its_cause():
    calls = ["(randn(3), randn(3, requires_grad=True))", "(randn(4, requires_grad=True), randn(4, requires_grad=True))"]
    (found,) = findings(audit(AsksForAnother, calls, laws=["surrogate", "needs_input_grad"]).report)

    assert found.verdict.finding.message.startswith("backward returns no gradient for `w`")
    assert found.verdict.finding.likely.startswith("right where `x` requires a gradient too")
    assert found.follows == ["needs_input_grad"]


@pytest.mark.parametrize(("zero", "status"), [(("w",), Status.HOLDS), ((), Status.BROKEN)])
def test_a_proposal_says_which_gradient_is_zero(zero, status):
    itself = stand_in(lambda x, w: Zeros.apply(x, w))
    spec = FunctionSpec(
        name="zeros",
        function=Zeros.apply,
        primal=itself,
        surrogate=itself,
        wrt=("x", "w"),
        zero_gradient=zero,
        cases=lambda make: [read_case(f"({X}, {W})")],
        supports=Supports.eager(),
    )

    assert {v.status for v in verify([spec], [law for law in LAWS if law.name == "surrogate"]).verdicts} == {status}
