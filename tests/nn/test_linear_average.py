"""LinearAverage: its buffers, its two modes, `update`, what it refuses, and what survives copying and casting."""

from __future__ import annotations

import copy
import io
import math
import pickle

import pytest
import torch

from functions.memory_bank import rows_of_the_table
from gradspec.functions._linear_average._cases import state_after
from gradspec.nn import LinearAverage

Y = torch.tensor([2, 0, 2])


@pytest.fixture
def bank():
    torch.manual_seed(0)
    return LinearAverage(4, 5, T=0.5, momentum=0.25)


@pytest.fixture
def x():
    return torch.randn(3, 4, generator=torch.Generator().manual_seed(1)).requires_grad_()


def after(bank, x, moves=1):
    memory = bank.memory.detach().clone()
    for _ in range(moves):
        memory = state_after(x.detach(), Y, memory, bank.params)["memory"]
    return memory


# buffers


def test_buffers_are_the_published_ones_in_their_order(bank):
    assert {name: tuple(value.shape) for name, value in bank.state_dict().items()} == {"params": (2,), "memory": (5, 4)}
    assert list(bank.state_dict()) == ["params", "memory"]
    assert list(bank.parameters()) == []
    assert bank.params.tolist() == [0.5, 0.25]
    assert {value.dtype for value in bank.state_dict().values()} == {torch.float32}


def test_defaults_are_the_published_ones():
    torch.testing.assert_close(LinearAverage(4, 5).params, torch.tensor([0.07, 0.5]))


def test_whole_numbers_are_numbers():
    assert LinearAverage(4, 5, T=1, momentum=0).params.dtype == torch.float32


def test_the_initial_bank_is_uniform_within_its_bound():
    torch.manual_seed(0)
    memory = LinearAverage(12, 5_000).memory
    bound = 1 / math.sqrt(12 / 3)

    # Five standard errors of the mean, and of the mean square, of 60,000 uniform numbers.
    assert memory.abs().max() <= bound
    assert memory.abs().max() > 0.999 * bound
    assert abs(memory.mean()) < 5 * bound / math.sqrt(3 * memory.numel())
    assert abs(memory.square().mean() - bound**2 / 3) < 5 * bound**2 * math.sqrt(4 / 45 / memory.numel())
    assert memory.square().sum(1).mean() == pytest.approx(1, abs=0.02)


def test_a_seed_gives_the_published_bank(bank):
    # The published line, in words: uniform numbers times twice the bound, minus the bound.
    torch.manual_seed(0)
    bound = 1 / math.sqrt(4 / 3)
    assert torch.equal(bank.memory, torch.rand(5, 4) * (2 * bound) + (-bound))


# when it moves


def training(bank, x):
    bank(x, Y)


def training_backward(bank, x):
    bank(x, Y).sum().backward()


def training_without_grad(bank, x):
    with torch.no_grad():
        bank(x, Y)


def evaluation_backward(bank, x):
    bank.eval()(x, Y).sum().backward()


def update(bank, x):
    bank.update(x, Y)


def update_in_evaluation(bank, x):
    bank.eval().update(x, Y)


def both(bank, x):
    logits = bank(x, Y)
    bank.update(x, Y)
    logits.sum().backward()


def loss_backward(bank, x):
    bank.loss(x, Y).backward()


def loss_backward_update(bank, x):
    bank.loss(x, Y).backward()
    bank.update(x, Y)


SITUATIONS = {
    "`bank(x, y)` in training mode": training,
    "`bank(x, y)` in training mode, then backward": training_backward,
    "`bank(x, y)` in training mode under `torch.no_grad()`": training_without_grad,
    "`bank(x, y)` in evaluation mode, then backward": evaluation_backward,
    "`bank.update(x, y)` in training mode": update,
    "`bank.update(x, y)` in evaluation mode": update_in_evaluation,
    "`bank(x, y)` in training mode, then `bank.update(x, y)`, then backward": both,
    "`bank.loss(x, y)` in training mode, then backward": loss_backward,
    "`bank.loss(x, y)`, then backward, then `bank.update(x, y)`": loss_backward_update,
}
TABLE = rows_of_the_table("modules/linear_average.md")


def test_the_page_has_a_line_for_each_situation():
    assert list(TABLE) == list(SITUATIONS)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_bank_moves_as_often_as_the_page_says(bank, x, situation):
    start, expected = bank.memory.clone(), after(bank, x, TABLE[situation])
    SITUATIONS[situation](bank, x)

    torch.testing.assert_close(bank.memory, expected)
    assert torch.equal(bank.memory, start) == (TABLE[situation] == 0)


def test_both_modes_have_the_same_logits_and_gradient(bank, x):
    logits = bank(x, Y)
    logits.sum().backward(retain_graph=True)
    gradient, x.grad = x.grad, None
    twin = copy.deepcopy(bank).eval()
    twin.memory.copy_(logits.grad_fn.pending.seen.memory)
    with torch.no_grad():  # back to the bank of the forward pass
        rows, old, _ = logits.grad_fn.pending.seen.moved_since()
        twin.memory[rows] = old
    again = twin(x, Y)
    again.sum().backward()

    assert torch.equal(again, logits)
    torch.testing.assert_close(x.grad, gradient)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("training", [True, False])
def test_the_loss_is_the_cross_entropy_of_the_logits(bank, x, reduction, training):
    bank.train(training)
    loss = bank.loss(x, Y, reduction=reduction)
    loss.sum().backward()
    twin = x.detach().requires_grad_()
    right = torch.nn.functional.cross_entropy(twin @ bank.memory.T / 0.5, Y, reduction=reduction)
    right.sum().backward()

    torch.testing.assert_close(loss, right)
    torch.testing.assert_close(x.grad, twin.grad)


def test_the_gradient_of_the_loss_is_that_of_the_bank_before_the_update(bank, x):
    twin = x.detach().requires_grad_()
    torch.nn.functional.cross_entropy(twin @ bank.memory.T / 0.5, Y).backward()
    loss = bank.loss(x, Y)
    bank.update(x, Y)
    loss.backward()

    torch.testing.assert_close(x.grad, twin.grad)


def test_the_loss_is_refused_what_the_call_is_refused(bank):
    with pytest.raises(ValueError, match="5 features and the bank 4"):
        bank.loss(torch.ones(3, 5), Y)
    with pytest.raises(IndexError, match="5"):
        bank.loss(torch.ones(3, 4), Y + 3)
    with pytest.raises(ValueError, match="reduction"):
        bank.loss(torch.ones(3, 4), Y, reduction="average")


def test_an_update_leaves_a_pending_gradient_exact(bank, x):
    expected = torch.ones(3, 5) @ bank.memory / 0.5
    logits = bank(x, Y)
    bank.update(5 * x, Y)
    logits.sum().backward()

    torch.testing.assert_close(x.grad, expected)


def test_update_takes_no_gradient(bank, x):
    bank.update(x, Y)

    assert not bank.memory.requires_grad
    assert bank.memory.grad_fn is None


def test_evaluation_is_any_transforms(bank, x):
    bank.eval()
    expected = torch.ones(3, 5) @ bank.memory / 0.5
    torch.testing.assert_close(torch.func.grad(lambda t: bank(t, Y).sum())(x.detach()), expected)
    torch.testing.assert_close(torch.func.jvp(lambda t: bank(t, Y), (x,), (x,))[1], bank(x, Y))
    rows = torch.vmap(lambda t, y: bank(t[None], y[None])[0])(x, Y)
    torch.testing.assert_close(rows, bank(x, Y))
    torch._dynamo.reset()
    compiled = torch.compile(bank, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, Y), bank(x, Y))
    for strict in (True, False):
        program = torch.export.export(bank, (x, Y), strict=strict).module(check_guards=False)
        torch.testing.assert_close(program(x, Y), bank(x, Y))


def test_training_mode_is_not_exported(bank, x):
    with pytest.raises(RuntimeError, match=r"Export the module in evaluation mode: LinearAverage\.eval\(\)"):
        torch.export.export(bank, (x, Y), strict=False)


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_a_compiled_training_step(bank, x, backend):
    expected = after(bank, x)
    torch._dynamo.reset()
    torch.compile(bank, fullgraph=True, backend=backend)(x, Y).sum().backward()

    torch.testing.assert_close(bank.memory, expected)


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_a_compiled_update(bank, x, backend):
    expected = after(bank, x)
    torch._dynamo.reset()
    torch.compile(bank.update, fullgraph=True, backend=backend)(x, Y)

    torch.testing.assert_close(bank.memory, expected)


def test_a_compiled_update_is_found_by_a_graph_that_waits(bank, x):
    torch._dynamo.reset()
    logits = bank(x, Y)
    torch.compile(bank.update, fullgraph=True, backend="aot_eager")(x, Y)
    with pytest.raises(RuntimeError, match="something other than its own moves has written"):
        logits.sum().backward()


@pytest.mark.parametrize(
    "transform",
    [lambda f, x: torch.vmap(f)(x[None]), lambda f, x: torch.func.grad(lambda t: f(t) or t.sum())(x)],
    ids=["vmap", "grad"],
)
def test_an_update_under_torch_func_is_refused(bank, x, transform):
    start = bank.memory.clone()
    with pytest.raises(RuntimeError, match=r"LinearAverage\.update: a bank cannot move under torch\.func"):
        transform(lambda t: bank.update(t, Y), x.detach())
    assert torch.equal(bank.memory, start)


# what is refused


@pytest.mark.parametrize(
    ("build", "error", "says"),
    [
        (lambda: LinearAverage(0, 5), ValueError, "inputSize is 0; write 1 or more"),
        (lambda: LinearAverage(4, -1), ValueError, "outputSize is -1; write 1 or more"),
        (lambda: LinearAverage(4.0, 5), TypeError, "inputSize is 4.0; write an integer"),
        (lambda: LinearAverage(4, 5, T=0), ValueError, "T is 0; write a temperature above 0"),
        (lambda: LinearAverage(4, 5, T=-0.07), ValueError, "T is -0.07; write a temperature above 0"),
        (lambda: LinearAverage(4, 5, T=math.nan), ValueError, "T is nan; write"),
        (lambda: LinearAverage(4, 5, T=math.inf), ValueError, "T is inf; write"),
        (lambda: LinearAverage(4, 5, T="0.07"), TypeError, "T is a str; write a number"),
        (lambda: LinearAverage(4, 5, momentum=1.5), ValueError, "momentum is 1.5; write .* between 0 and 1"),
        (lambda: LinearAverage(4, 5, momentum=-0.5), ValueError, "momentum is -0.5; write .* between 0 and 1"),
        (lambda: LinearAverage(4, 5, momentum=math.nan), ValueError, "momentum is nan; write"),
        (lambda: LinearAverage(4, 5, momentum=True), TypeError, "momentum is a bool; write a number"),
    ],
)
def test_what_makes_no_bank_is_refused(build, error, says):
    with pytest.raises(error, match=f"LinearAverage: {says}"):
        build()


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"params": torch.tensor([0.0, 0.5])}, "params: T is 0.0; write a temperature above 0"),
        ({"params": torch.tensor([0.07, 2.0])}, "params: momentum is 2.0; write"),
        ({"params": torch.tensor([0.07])}, r"params has shape \(1,\) in the state, and \(2,\) here"),
        ({"memory": torch.ones(6, 4)}, r"memory has shape \(6, 4\) in the state, and \(5, 4\) here"),
    ],
    ids=["temperature", "momentum", "shape of params", "shape of the bank"],
)
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "inside a model"])
def test_a_wrong_state_is_refused_before_anything_has_changed(bank, changed, says, strict, inside):
    model = torch.nn.ModuleDict({"bank": bank}) if inside else bank
    prefix = "bank." if inside else ""
    given = {"params": torch.tensor([0.1, 0.9]), "memory": torch.ones(5, 4)} | changed
    before = copy.deepcopy(bank.state_dict())
    with pytest.raises(RuntimeError, match=prefix + says):
        model.load_state_dict({prefix + name: value for name, value in given.items()}, strict=strict)
    assert all(torch.equal(value, before[name]) for name, value in bank.state_dict().items())


@pytest.mark.parametrize("call", ["bank", "bank in evaluation", "update"])
@pytest.mark.parametrize(
    ("x", "y", "error", "says"),
    [
        (torch.ones(3, 5), Y, ValueError, r"x has shape \(3, 5\) .*give x as \(B, 4\)"),
        (torch.ones(2, 4), Y, ValueError, r"y has shape \(3,\); give one row for each of the 2"),
        (torch.ones(3, 4).double(), Y, ValueError, r"x is torch.float64 and memory torch.float32"),
        (torch.ones(3, 4), Y.int(), TypeError, r"y has dtype torch.int32"),
        (torch.ones(3, 4), Y.tolist(), TypeError, r"y is a list"),
    ],
    ids=["features", "batch", "dtype", "dtype of y", "list"],
)
def test_a_wrong_call_is_refused_and_nothing_has_changed(bank, call, x, y, error, says):
    start = bank.memory.clone()
    function = {"bank": bank, "update": bank.update, "bank in evaluation": copy.deepcopy(bank).eval()}[call]
    with pytest.raises(error, match=says):
        function(x, y)
    assert torch.equal(bank.memory, start)


@pytest.mark.parametrize("call", ["forward", "update"])
@pytest.mark.parametrize("row", [-1, 5])
def test_a_row_that_is_none_is_refused_before_anything_has_changed(bank, x, call, row):
    start = bank.memory.clone()
    with pytest.raises(IndexError, match=f"y holds {row}, and the bank has 5 rows; give 0 to N - 1"):
        getattr(bank, call)(x, torch.tensor([0, row, 1]))
    assert torch.equal(bank.memory, start)


# state, copies, casts


def test_a_published_state_loads_strictly(bank, x):
    published = {"params": torch.tensor([0.1, 0.9]), "memory": torch.randn(5, 4)}
    bank.load_state_dict(published, strict=True)

    assert torch.equal(bank.params, published["params"])
    torch.testing.assert_close(bank(x, Y), x @ published["memory"].T / 0.1)
    bank(x, Y).sum().backward()  # the loaded momentum is the one that counts
    expected = state_after(x.detach(), Y, published["memory"], published["params"])["memory"]
    torch.testing.assert_close(bank.memory, expected)


def test_a_state_is_saved_and_loaded(bank):
    file = io.BytesIO()
    torch.save(bank.state_dict(), file)
    file.seek(0)
    twin = LinearAverage(4, 5)
    twin.load_state_dict(torch.load(file, weights_only=True))

    assert torch.equal(twin.memory, bank.memory)
    assert torch.equal(twin.params, bank.params)


def test_a_missing_or_unknown_key_is_for_torch_to_say(bank):
    with pytest.raises(RuntimeError, match=r'Missing key.*"params"'):
        bank.load_state_dict({"memory": torch.ones(5, 4)})
    with pytest.raises(RuntimeError, match=r'Unexpected key.*"queue"'):
        bank.load_state_dict(bank.state_dict() | {"queue": torch.ones(1)})


@pytest.mark.parametrize("make", [copy.deepcopy, lambda bank: pickle.loads(pickle.dumps(bank))], ids=["copy", "pickle"])
def test_a_copy_computes_the_same_and_shares_nothing(bank, x, make):
    logits = bank(x, Y)  # a journal is open
    twin = make(bank)
    assert torch.equal(twin(x, Y), logits)
    start, expected = bank.memory.clone(), after(bank, x)
    twin(x, Y).sum().backward()

    assert torch.equal(bank.memory, start)
    torch.testing.assert_close(twin.memory, expected)
    logits.sum().backward()
    torch.testing.assert_close(bank.memory, expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_another_dtype(bank, x, dtype):
    bank.to(dtype)
    given = x.detach().to(dtype).requires_grad_()
    logits = bank(given, Y)
    exact = state_after(given.detach().double(), Y, bank.memory.double(), bank.params.double())["memory"]
    logits.sum().backward()

    assert logits.dtype == given.grad.dtype == bank.memory.dtype == dtype
    assert (bank.memory.double() - exact).abs().max() <= 8 * torch.finfo(dtype).eps


@pytest.mark.parametrize("mode", [True, False], ids=["training", "evaluation"])
def test_autocast_keeps_the_dtype_of_the_bank(bank, x, mode):
    bank.train(mode)
    expected = after(bank, x.bfloat16().float())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        embeddings = torch.nn.functional.linear(x, torch.eye(4))
        logits = bank(embeddings, Y)
    logits.sum().backward()
    if not mode:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            bank.update(embeddings, Y)

    assert embeddings.dtype == torch.bfloat16
    assert logits.dtype == torch.float32
    torch.testing.assert_close(bank.memory, expected)


def test_a_bank_may_be_replaced_as_lemniscate_does(bank, x):
    # It recomputes all features into the transposed bank, and assigns that.
    features = torch.nn.functional.normalize(torch.randn(4, 5), dim=0)
    bank.memory = features.t()
    expected = after(bank, x)
    bank(x, Y).sum().backward()

    torch.testing.assert_close(bank.memory, expected)


def test_its_line_in_a_printed_model(bank):
    assert str(bank) == "LinearAverage(inputSize=4, outputSize=5, T=0.5, momentum=0.25)"


def test_an_empty_batch(bank):
    x = torch.ones(0, 4, requires_grad=True)
    start = bank.memory.clone()
    logits = bank(x, Y[:0])
    logits.sum().backward()
    bank.update(x, Y[:0])

    assert logits.shape == (0, 5)
    assert x.grad.shape == (0, 4)
    assert torch.equal(bank.memory, start)
