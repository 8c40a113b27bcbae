"""Audits of modules: their state keeps its name and its memory, and evaluation only reads the running statistics."""

import pytest
import torch
from torch import nn
from torch.autograd import Function

from gradspec import audit
from gradspec.law import Rank, Status
from gradspec.laws import LAWS
from gradspec.spec import Accuracy

NAMED = {law.name: law for law in LAWS}
#: Compiled, torch 2.13 gives another gradient where a buffer is copied and then moved, whatever the function.
EAGER = [law for law in LAWS if law.cost != "compile" and "checkpoint" not in law.name]


class Product(Function):
    """A product, whose backward can be told to read its arguments in the order of memory."""

    @staticmethod
    def forward(ctx, x, weight, in_order):
        ctx.in_order = in_order
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, y_bar):
        x, weight = ctx.saved_tensors
        if ctx.in_order:
            x = x.as_strided(x.shape, (x.shape[-1], 1))
        return y_bar * weight, (y_bar * x).sum(0), None


class Norm(nn.Module):
    """A product and a normalisation."""

    in_order = False

    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor([0.5, 2.0, -1.0]))
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x):
        return self.bn(Product.apply(x, self.factor, self.in_order))


class NormReadInOrder(Norm):
    in_order = True


class Linear(nn.Module):
    """Its parameter is a matrix, which it can be told to read in the order of memory."""

    def __init__(self, in_order):
        super().__init__()
        self.in_order = in_order
        self.weight = nn.Parameter(torch.tensor([[0.5, 2.0], [-1.0, 1.5], [0.25, 3.0]]))

    def forward(self, x):
        return x @ (self.weight.as_strided((3, 2), (2, 1)) if self.in_order else self.weight)


class NormMovedInEvaluation(Norm):
    def forward(self, x):
        y = super().forward(x)
        nn.functional.batch_norm(x, self.bn.running_mean, self.bn.running_var, training=True)
        return y


class NormMovedByHand(Norm):
    def forward(self, x):
        self.bn.running_var.mul_(0.9)
        return super().forward(x)


class Moves(Function):
    """The value as it is; backward moves statistics by an operation of which the schema does not say so."""

    @staticmethod
    def forward(ctx, x, mean, variance):
        ctx.save_for_backward(mean, variance)
        return x.clone()

    @staticmethod
    def backward(ctx, y_bar):
        torch.ops.aten.batch_norm_update_stats(y_bar, *ctx.saved_tensors, 0.1)
        return y_bar, None, None


class NormMovedInBackward(Norm):
    def forward(self, x):
        return super().forward(Moves.apply(x, self.bn.running_mean, self.bn.running_var))


def judged(module, law, case="(randn(5, 3),)"):
    (verdict,) = audit(module, [case], laws=[NAMED[law]]).report.verdicts
    return verdict


@pytest.mark.parametrize(
    ("law", "sick"), [("layout", NormReadInOrder), ("declared_writes", NormMovedInEvaluation)], ids=str
)
def test_a_normalisation_in_evaluation_holds_and_its_twin_does_not(law, sick):
    assert [judged(module().eval(), law).status for module in (Norm, sick)] == [Status.HOLDS, Status.BROKEN]


@pytest.mark.parametrize(
    ("module", "where"),
    [
        (NormMovedInEvaluation().eval(), "forward writes to `bn.running_mean`"),
        (NormMovedByHand().eval(), "forward writes to `bn.running_var`"),
    ],
)
def test_what_is_moved_is_named_as_the_module_names_them(module, where):
    verdict = judged(module, "declared_writes")

    assert verdict.status is Status.BROKEN
    assert verdict.finding.message.startswith(where)
    assert judged(module, "inputs_untouched").finding.likely.startswith("the buffer moves in evaluation, too")


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("law", ["declared_writes", "inputs_untouched"])
def test_statistics_that_backward_moves_are_found(law, training):
    verdict = judged(NormMovedInBackward().train(training), law)

    assert verdict.status is Status.BROKEN
    assert verdict.finding.message.startswith("backward writes to `bn.running_mean`")
    if law == "inputs_untouched":
        assert ("it moves twice in a step" in verdict.finding.message) == training


class RunsABlockAgain(nn.Module):
    """Runs a block again in backward, as a checkpoint does, and puts its statistics back, or not."""

    def __init__(self, puts_back):
        super().__init__()
        self.block, self.puts_back = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), puts_back

    def forward(self, x):
        return RunsAgain.apply(self.block, self.puts_back, x, *self.block.parameters())


class RunsAgain(Function):
    @staticmethod
    def forward(ctx, block, puts_back, x, *parameters):
        ctx.block, ctx.puts_back = block, puts_back
        ctx.save_for_backward(x, *parameters)
        return block(x)

    @staticmethod
    def backward(ctx, y_bar):
        x, *parameters = ctx.saved_tensors
        before = [buffer.clone() for buffer in ctx.block.buffers()]
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            y = ctx.block(x)
        found = torch.autograd.grad(y, [x, *parameters], y_bar)
        if ctx.puts_back:
            for buffer, value in zip(ctx.block.buffers(), before, strict=True):
                buffer.copy_(value)
        return None, None, *found


TOUCHED = ["surrogate", "inputs_untouched", "declared_writes", "retained_graph", "needs_input_grad", "checkpoint"]


@pytest.mark.parametrize("laws", [TOUCHED, pytest.param(None, marks=pytest.mark.slow)])
def test_statistics_that_a_second_run_moves_are_found_unless_it_puts_them_back(laws):
    sound, broken = (
        audit(RunsABlockAgain(puts_back), ["(randn(8, 3),)"], laws=laws, jobs=1).report for puts_back in (True, False)
    )

    assert {v.law for v in sound.verdicts if v.status.is_failure} <= {"second_order"}
    # A parameter that is frozen raises an error, and the call trains it.
    assert {v.status for v in sound.of(law="needs_input_grad")} == {Status.NOT_PROMISED}
    (finding,) = (v.finding for v in broken.of(law="inputs_untouched"))
    assert finding.reason.kind == "moved twice"


class Centred(nn.Module):
    """Takes away the mean of the batches before this one, which it keeps; `held` is what backward is to read of it."""

    def __init__(self, held):
        super().__init__()
        self.held = held
        self.weight = nn.Parameter(torch.tensor([0.5, 2.0, -1.0]))
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x):
        y = CentredProduct.apply(x, self.weight, self.held(self.mean))
        if self.training:
            self.mean.lerp_(x.detach().mean(0), 0.5)
        return y


class CentredProduct(Function):
    @staticmethod
    def forward(ctx, x, weight, mean):
        ctx.save_for_backward(x, weight)
        ctx.mean = mean
        return (x - mean) * weight

    @staticmethod
    def backward(ctx, y_bar):
        x, weight = ctx.saved_tensors
        return y_bar * weight, (y_bar * (x - ctx.mean)).sum(0), None


def test_state_that_a_module_in_training_moves_is_no_finding_and_each_call_begins_with_what_it_was():
    sound = audit(Centred(torch.clone), ["(randn(5, 3),)"], laws=EAGER)

    assert not [v.law for v in sound.report.failures if v.finding.rank != Rank.WASTE]
    assert any("Forward moves `mean`" in remark for remark in sound.remarks)


def test_a_gradient_of_state_that_has_moved_is_wrong_and_so_is_one_that_the_next_call_moves():
    wrong = audit(Centred(lambda mean: mean), ["(randn(5, 3),)"], laws=EAGER)

    found = {v.law: v.finding.likely for v in wrong.report.violations if v.finding.rank != Rank.WASTE}
    assert found.keys() == {"surrogate", "second_order", "interleaved"}
    assert found["surrogate"].startswith("right with `ctx.mean = mean.clone()`")
    assert found["interleaved"] == "backward reads `mean`, which the next call writes to: let it read a clone()"


class PowerStep(nn.Module):
    """A linear map divided by its norm, of which one step of the power method estimates the singular vectors."""

    def __init__(self, own):
        super().__init__()
        self.own = own
        self.weight = nn.Parameter(torch.tensor([[1.0, 2.0], [-1.0, 0.5]]))
        for name in "uv":
            self.register_buffer(name, torch.tensor([0.6, 0.8]))

    def forward(self, x):
        with torch.no_grad():
            self.v.copy_(nn.functional.normalize(self.weight.T @ self.u, dim=0))
            self.u.copy_(nn.functional.normalize(self.weight @ self.v, dim=0))
        return x @ self.weight.T / (self.own(self.u) @ self.weight @ self.own(self.v))


@pytest.mark.parametrize("own", [torch.clone, lambda buffer: buffer])
def test_a_buffer_that_autograd_keeps_and_the_next_call_writes_to_is_named_where_torch_raises(own):
    found = judged(PowerStep(own), "interleaved", "(randn(5, 2),)").finding

    assert (found.likely, "modified by an inplace" in found.message) == (
        ("", False)
        if own is torch.clone
        else ("backward reads `u` and `v`, which the next call writes to: let it read a clone()", True)
    )


@pytest.mark.parametrize(("in_order", "status"), [(False, Status.HOLDS), (True, Status.BROKEN)])
def test_a_parameter_in_another_order_of_memory_is_asked_for(in_order, status):
    assert judged(Linear(in_order), "layout").status is status


class Beside(nn.Module):
    """A parameter whose name another one has with a dot, and one that the call has too."""

    def __init__(self, child=1.0):
        super().__init__()
        self.a = nn.Module()
        self.a.b = nn.Parameter(torch.tensor(2.0))
        self.a_b = nn.Parameter(torch.tensor(3.0))
        self.x = nn.Parameter(torch.tensor(4.0))

    def forward(self, x):
        return Product.apply(x, self.a.b * self.a_b * self.x, False)


class Forgets(Function):
    @staticmethod
    def forward(ctx, x, weight):
        return x * weight

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar, y_bar.sum()


class BesideWrong(Beside):
    def __init__(self, wrong):
        super().__init__()
        self.wrong = wrong

    def forward(self, x):
        factors = {"a.b": self.a.b, "a_b": self.a_b, "self.x": self.x}
        wrong = factors.pop(self.wrong)
        for factor in factors.values():
            x = x * factor
        return Forgets.apply(x, wrong) - (1 - wrong.detach()) * (x - x.detach())


@pytest.mark.parametrize("wrong", ["a.b", "a_b", "self.x"])
def test_names_that_are_alike_stay_apart(wrong):
    verdict = judged(BesideWrong(wrong), "surrogate", "(randn(3),)")

    assert (verdict.status, f"`{wrong}`" in str(verdict.finding)) == (Status.BROKEN, True)


def test_a_sound_module_of_names_that_are_alike_holds():
    # The shape of the gradient of a number is that of the number.
    class Sound(Beside):
        def forward(self, x):
            return x * self.a.b * self.a_b * self.x

    assert judged(Sound(), "surrogate", "(randn(3),)").status is Status.HOLDS


def test_the_children_of_a_sequence_have_numbers_for_names():
    class Wrong(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.tensor(2.0))

        def forward(self, x):
            return Forgets.apply(x, self.weight)

    sound = judged(nn.Sequential(nn.Linear(3, 2), nn.Tanh()), "surrogate")
    wrong = judged(nn.Sequential(nn.Tanh(), Wrong()), "surrogate")

    assert (sound.status, wrong.status) == (Status.HOLDS, Status.BROKEN)
    assert "`1.weight`" in str(wrong.finding) or "`x`" in str(wrong.finding)


class Logs(nn.GRU):
    """Keeps what it was given last."""

    def forward(self, x):
        self.last = x
        return super().forward(x)


@pytest.mark.parametrize(("module", "status"), [(nn.GRU, Status.HOLDS), (Logs, Status.BROKEN)])
def test_the_parameters_of_a_recurrent_module_are_freed_and_what_it_logs_is_not(module, status):
    assert judged(module(3, 2), "freed", "(randn(4, 5, 3),)").status is status


def test_a_module_whose_parameters_have_no_shape_yet_is_refused():
    with pytest.raises(ValueError, match="LazyLinear has the parameter weight, which has no shape yet: call it once"):
        audit(nn.LazyLinear(2), ["(randn(5, 3),)"])


def test_state_that_moves_is_told_from_an_argument_of_its_name():
    class Moves(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(3))
            self.weight = nn.Parameter(torch.ones(3))

        def forward(self, x, mean):
            self.mean.add_(1)
            return (x - mean) * self.weight

    found = audit(Moves(), ["(randn(5, 3), randn(3))"], laws=[NAMED["freed"]])
    assert any(remark.startswith("Forward moves `self.mean`,") for remark in found.remarks)


class Recomputed(Function):
    """Runs a body again in backward, and differentiates it by its input and by what it is given beside."""

    @staticmethod
    def forward(ctx, x, body, *weights):
        ctx.save_for_backward(x)
        ctx.body, ctx.weights = body, weights
        return body(x)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            y = ctx.body(x)
        x_bar, *others = torch.autograd.grad(y, (x, *ctx.weights), y_bar)
        return x_bar, None, *others


class Block(nn.Module):
    def __init__(self, *, is_right):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
        self.is_right = is_right

    def forward(self, x):
        return Recomputed.apply(x, self.body, *(self.body.parameters() if self.is_right else ()))


@pytest.mark.parametrize("with_reference", [False, True])
def test_parameters_that_backward_forgets_are_lost_whatever_the_inputs_are_held_to(with_reference):
    block = Block(is_right=False)
    reference = (lambda x: block.body(x)) if with_reference else None
    found = audit(block, ["(randn(4, 3, requires_grad=True),)"], laws=["surrogate", "vjp"], reference=reference)

    (verdict,) = (one for one in found.report.verdicts if one.status is Status.BROKEN)
    assert verdict.law == ("vjp" if with_reference else "surrogate")
    start = "gradient of `body.0.weight`" if with_reference else "backward returns no gradient for `body.0.weight`"
    assert verdict.finding.message.startswith(start)
    assert verdict.finding.got == "None"


def test_parameters_require_a_gradient_where_only_the_inputs_are_held_to_a_reference():
    block = Block(is_right=True)
    laws = ["primal", "vjp", "cotangent_linearity", "needs_input_grad", "retained_graph", "checkpoint"]
    found = audit(block, ["(randn(4, 3, requires_grad=True),)"], laws=laws, reference=lambda x: block.body(x))

    # It differentiates by `x` too where only a parameter is asked for.
    ranks = {v.law: v.finding.rank for v in found.report.verdicts if v.status is not Status.HOLDS}
    assert ranks == {"needs_input_grad": Rank.WASTE}


def test_a_module_that_a_checkpoint_calls_in_backward_keeps_the_state_of_the_call():
    found = audit(Block(is_right=True), ["(randn(4, 3, requires_grad=True),)"], laws=["checkpoint"])

    assert [v.status for v in found.report.verdicts] == [Status.HOLDS]


class Adjoint(Function):
    """Runs a module again in backward, and asks for the gradients of its parameters, as an adjoint does."""

    @staticmethod
    def forward(ctx, module, x, *parameters):
        ctx.module = module
        ctx.save_for_backward(x, *parameters)
        with torch.no_grad():
            return module(x)

    @staticmethod
    def backward(ctx, y_bar):
        x, *parameters = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            found = torch.autograd.grad(ctx.module(x), (x, *parameters), y_bar, allow_unused=True)
        return None, *found


class OfAnAdjoint(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

    def forward(self, x):
        return Adjoint.apply(self.layer, x, *self.layer.parameters())


@pytest.mark.dear
def test_a_module_whose_backward_runs_it_again_is_not_accused_of_what_compiled_autograd_makes_of_the_audit():
    laws = ["primal", "surrogate", "compiled_autograd"]
    report = audit(OfAnAdjoint().double(), ["(randn(3, 2),)"], laws=laws).report

    assert not report.failures
    assert {str(v.status) for v in report.of(law="compiled_autograd")} == {"not_measured"}


def test_a_module_without_anything_to_differentiate_is_refused():
    frozen = torch.nn.Embedding(4, 3).requires_grad_(False)

    with pytest.raises(ValueError, match="has a floating-point tensor but frozen ones, so none has a gradient"):
        audit(frozen, ["(tensor([1, 2]),)"])


class OffByALittle(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, y_bar):
        x, weight = ctx.saved_tensors
        return y_bar * weight * (1 + 1e-5), (y_bar * x).sum(0)


class OfALittle(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([0.5, -1.5, 2.0]))

    def forward(self, x):
        return OffByALittle.apply(x, self.weight)


@pytest.mark.parametrize(("rtol", "status"), [(1e-3, "holds"), (1e-7, "broken")])
def test_a_declared_accuracy_is_that_of_a_module_too(rtol, status):
    (verdict,) = audit(
        OfALittle(), ["(randn(4, 3),)"], laws=["surrogate"], accuracy=Accuracy(rtol=rtol)
    ).report.verdicts

    assert str(verdict.status) == status
