"""What an audit of a program's calls leaves aside: what the program does not do, and what its dtypes do not show."""

from pathlib import Path

import pytest
import torch

import gradspec
from gradspec._watch._audits import audited
from gradspec._watch._text import text
from gradspec.law import Rank
from gradspec.render._github import github


def rows(run):
    with gradspec.watch() as seen:
        run()
    return seen.audit().rows


class Dropped(torch.autograd.Function):
    """Keeps nothing in evaluation; backward lacks the factor of the mask."""

    @staticmethod
    def forward(ctx, x, p, training):
        if not training:
            return x.clone()
        mask = (torch.rand_like(x) > p).to(x.dtype) / (1 - p)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, y_bar):
        (mask,) = ctx.saved_tensors
        return y_bar * (mask > 0), None, None


@pytest.mark.parametrize("with_graph", [True, False])
def test_a_call_in_evaluation_does_not_hide_what_training_does(with_graph):
    def run():
        x = torch.randn(8, 4, requires_grad=True)
        Dropped.apply(x, 0.3, True).sum().backward()
        with torch.set_grad_enabled(with_graph):
            Dropped.apply(x if with_graph else x.detach(), 0.3, False)

    (row,) = rows(run)
    assert row.is_wrong
    assert row.asked[0].found.laws == ["surrogate"]


class InPlace(torch.autograd.Function):
    """Right: it writes to what it is given, and says so."""

    factor = 1.0

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x.exp_())
        ctx.save_for_backward(x)
        return x

    @classmethod
    def backward(cls, ctx, y_bar):
        return cls.factor * y_bar * ctx.saved_tensors[0]


class InPlaceTwice(InPlace):
    factor = 2.0


@pytest.mark.parametrize("function", [InPlace, InPlaceTwice])
def test_what_writes_in_place_is_audited(function):
    (row,) = rows(lambda: function.apply(2 * torch.randn(4, 3, requires_grad=True)).sum().backward())

    assert row.report is not None
    assert row.is_wrong is (function is InPlaceTwice)


class OnlyInTheProgram(torch.autograd.Function):
    """Reads of its weight what a copy does not have."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.T

    @staticmethod
    def backward(ctx, y_bar):
        x, weight = ctx.saved_tensors
        weight.main_grad.add_(y_bar.T @ x)
        return y_bar @ weight, None


def test_an_error_that_the_program_does_not_have_is_no_finding():
    def run():
        weight = torch.nn.Parameter(torch.randn(3, 4))
        weight.main_grad = torch.zeros(3, 4)
        OnlyInTheProgram.apply(torch.randn(2, 4, requires_grad=True), weight).sum().backward()

    (row,) = rows(run)
    assert row.report is None
    assert "backward pass raises AttributeError" in row.why


class Gain(torch.autograd.Function):
    """Adds the rows up in the type of its cotangents, or with `single` in float32."""

    single = False

    @staticmethod
    def forward(ctx, x, gain):
        ctx.save_for_backward(x, gain)
        return x * gain.to(x.dtype)

    @classmethod
    def backward(cls, ctx, y_bar):
        x, gain = ctx.saved_tensors
        total = torch.zeros(gain.shape, dtype=torch.float32 if cls.single else y_bar.dtype)
        for row in range(0, len(x), 2):
            total += (y_bar[row : row + 2].to(total) * x[row : row + 2].to(total)).sum(0)
        return y_bar * gain.to(y_bar.dtype), total.to(gain.dtype)


class GainInSingle(Gain):
    single = True


@pytest.mark.dear
@pytest.mark.parametrize("function", [Gain, GainInSingle])
def test_a_sum_in_a_half_type_is_judged_on_all_rows_and_one_in_float32_is_no_waste(function):
    def run():
        x = torch.randn(1200, 16, dtype=torch.bfloat16, requires_grad=True)
        function.apply(x, torch.nn.Parameter(torch.randn(16))).sum().backward()

    (row,) = rows(run)
    if function is GainInSingle:
        assert row.asked == []
        return
    (found,) = row.asked
    said = found.found.verdict.finding
    assert found.found.verdict.case == "(bfloat16[1200, 16], float32[16])"
    assert said.likely.startswith("a sum that is carried in bfloat16 (test_of_programs.py:")
    assert " in float32: it is added up in bfloat16 in test_of_programs.py:" in said.message


class Normed(torch.autograd.Function):
    """Returns a direction and its length, for whose cotangent backward does nothing."""

    @staticmethod
    def forward(ctx, x):
        length = x.norm(dim=-1, keepdim=True)
        ctx.save_for_backward(x / length, length)
        return x / length, length

    @staticmethod
    def backward(ctx, y_bar, length_bar):
        y, length = ctx.saved_tensors
        return (y_bar - y * (y * y_bar).sum(-1, keepdim=True)) / length


@pytest.mark.parametrize("is_used", [False, True])
def test_an_output_that_no_loss_reads_is_waste_and_one_that_is_read_is_wrong(is_used):
    def run():
        for _ in range(3):
            y, length = Normed.apply(torch.randn(5, 4, requires_grad=True))
            (y.square() * torch.arange(4) + (length if is_used else length.detach())).sum().backward()

    (row,) = rows(run)
    found = row.asked[0].found
    assert found.laws == ["surrogate"]
    assert row.is_wrong is is_used
    assert (found.rank == Rank.WASTE) is not is_used
    assert ("but for the cotangent of output 1, for which the program never" in found.verdict.finding.message) is not (
        is_used
    )


class UnitRows(torch.autograd.Function):
    """Divides rows by their length; backward divides by it whatever it is."""

    @staticmethod
    def forward(ctx, x):
        length = x.norm(dim=1, keepdim=True)
        ctx.save_for_backward(x, length)
        return x / length.clamp(min=1e-6)

    @staticmethod
    def backward(ctx, y_bar):
        x, length = ctx.saved_tensors
        y = x / length
        return (y_bar - y * (y * y_bar).sum(1, keepdim=True)) / length


@pytest.mark.parametrize(("zero", "cotangent", "found"), [(2, 1.0, 3), (None, 1.0, 0), (None, float("nan"), 0)])
def test_the_first_pass_that_is_not_finite_is_named(zero, cotangent, found):
    def run():
        for step in range(5):
            x = torch.randn(4, 3)
            if step == zero:
                x[1] = 0
            UnitRows.apply(x.requires_grad_()).backward(torch.full((4, 3), cotangent))

    with gradspec.watch() as seen:
        run()
    program = seen.audit()
    assert program.rows[0].not_finite == found
    said = "its backward pass 3 returned NaN or infinity, and what it was handed was finite"
    assert (said in text(program)) is bool(found)


class Cubed(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3, x + 1

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, y_bar, z_bar):
        (x,) = ctx.saved_tensors
        return 3 * x * x * y_bar + z_bar


def test_the_numbers_of_a_transform_are_not_looked_at():
    with gradspec.watch() as seen:
        torch.vmap(torch.func.grad(lambda x: Cubed.apply(x)[0].sum()))(torch.randn(4, 3))
        x = torch.randn(3, requires_grad=True)
        torch.autograd.grad(Cubed.apply(x)[0], x, torch.eye(3), is_grads_batched=True)

    assert not seen._watcher.troubles


class Both(torch.autograd.Function):
    """Computes both gradients, whoever asks."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, y_bar):
        x, w = ctx.saved_tensors
        return y_bar * w, y_bar * x


@pytest.mark.parametrize("is_frozen", [False, True])
def test_a_gradient_that_the_program_always_asks_for_is_no_waste(is_frozen):
    def run():
        w = torch.randn(3, requires_grad=not is_frozen)
        Both.apply(torch.randn(3, requires_grad=True), w).sum().backward()

    (row,) = rows(run)
    assert [one.found.laws for one in row.asked] == ([["needs_input_grad"]] if is_frozen else [])


def test_a_report_for_a_workflow_has_the_line_of_the_class(monkeypatch):
    monkeypatch.chdir(Path(__file__).parent)

    with gradspec.watch() as seen:
        Dropped.apply(torch.randn(8, 4, requires_grad=True), 0.3, True).sum().backward()
    line = next(k for k, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "class Dropped" in text)
    assert github(seen.audit().judgement).startswith(f"::error file=test_of_programs.py,line={line},title=")


def test_no_command_names_a_class_that_a_function_makes(tmp_path):
    class Halved(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * x

        @staticmethod
        def backward(ctx, y_bar):
            return y_bar

    with gradspec.watch() as seen:
        Halved.apply(torch.randn(3, requires_grad=True)).sum().backward()
        Dropped.apply(torch.randn(3, 2, requires_grad=True), 0.3, True).sum().backward()
    again = {
        one.target: [verdict.rerun for verdict in audited(one, folder=tmp_path).violations]
        for one in seen._watcher.functions.values()
    }
    assert not any(again[Halved])
    assert any("Dropped --case" in command for command in again[Dropped])
