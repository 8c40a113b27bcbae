"""When the bank moves and to what, what its gradient is, and what is refused: what no law says of LinearAverageOp."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

from functions.memory_bank import PARAMS, Bank, rows_of_the_table
from gradspec.functions import LinearAverageOp
from gradspec.functions._linear_average import _journal as journal
from gradspec.functions._linear_average._bank import move_rows
from gradspec.functions._linear_average._journal import first_of_each, last_of_each


class InterruptedPassError(Exception):
    pass


@pytest.fixture
def bank(device):
    return Bank(device)


def forward(bank, x=None, y=None):
    return LinearAverageOp.apply(bank.x if x is None else x, bank.y if y is None else y, bank.memory, bank.params)


def second(bank):
    return forward(bank, bank.x2, bank.y2)


def without_grad(bank):
    with torch.no_grad():
        forward(bank).sum()
    assert not forward(bank, bank.x.detach()).requires_grad


def twice(bank):
    loss = forward(bank).sum()
    loss.backward(retain_graph=True)
    loss.backward()


def to_the_logits(bank):
    logits = forward(bank)
    torch.autograd.grad(logits.sum(), logits)


def raising(bank):
    x = bank.x.clone()
    failures = [InterruptedPassError]

    def fail(_):
        if failures:
            raise failures.pop()

    x.register_hook(fail)
    logits = forward(bank, x)
    with pytest.raises(InterruptedPassError):
        logits.sum().backward(retain_graph=True)
    return logits


def gradient_penalty(bank):
    (gradient,) = torch.autograd.grad((forward(bank) ** 2).sum(), bank.x, create_graph=True)
    (gradient**2).sum().backward()


def compiled(bank):
    torch._dynamo.reset()
    function = torch.compile(lambda x: forward(bank, x), fullgraph=True, backend="aot_eager")
    function(bank.x).sum().backward()


def apart(bank):
    one, other = forward(bank), second(bank)
    one.sum().backward()
    other.sum().backward()


def one_of_two(bank):
    one, _ = forward(bank), second(bank)
    one.sum().backward()


SITUATIONS = {
    "forward, and no backward pass": forward,
    "forward under `torch.no_grad()`, or of an `x` that requires no grad": without_grad,
    "forward, then backward": lambda bank: forward(bank).sum().backward(),
    "forward, then backward twice over the retained graph": twice,
    "forward, then `torch.autograd.grad` with respect to `x`": lambda bank: torch.autograd.grad(
        forward(bank), bank.x, bank.v
    ),
    "forward, then `torch.autograd.grad` with respect to the logits only": to_the_logits,
    "forward, then a backward pass that raises": raising,
    "forward, then a backward pass that raises, then one that does not": lambda bank: raising(bank).sum().backward(),
    "forward, then the gradient of a gradient penalty": gradient_penalty,
    "forward under `torch.utils.checkpoint`, then backward": lambda bank: (
        checkpoint(lambda x: forward(bank, x), bank.x, use_reentrant=False).sum().backward()
    ),
    "forward and backward in a compiled region": compiled,
    "two forwards, then one backward pass through both": lambda bank: (forward(bank) + second(bank)).sum().backward(),
    "two forwards, then two backward passes": apart,
    "two forwards, then the backward pass of one of them": one_of_two,
}
TABLE = rows_of_the_table("functions/linear_average_op.md")


def test_the_page_has_a_line_for_each_situation():
    assert list(TABLE) == list(SITUATIONS)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_bank_moves_as_often_as_the_page_says(bank, situation):
    SITUATIONS[situation](bank)

    assert bank.moves == TABLE[situation]


# when


def test_a_reentrant_checkpoint_moves_once(bank):
    checkpoint(lambda x: forward(bank, x), bank.x, use_reentrant=True).sum().backward()

    assert bank.moves == 1
    torch.testing.assert_close(bank.x.grad, bank.gradient(torch.ones_like(bank.v)))


def test_a_checkpoint_over_a_retained_graph_moves_once(bank):
    loss = checkpoint(lambda x: forward(bank, x), bank.x, use_reentrant=False).sum()
    loss.backward(retain_graph=True)
    loss.backward()

    assert bank.moves == 1


def test_two_graphs_in_one_pass_move_in_the_order_in_which_they_ran(bank):
    # Both batches hold row 0, so that the order shows.
    ran = []
    one, two = forward(bank), second(bank)
    one.register_hook(lambda _: ran.append((bank.x, bank.y)))
    two.register_hook(lambda _: ran.append((bank.x2, bank.y2)))
    (one + two).sum().backward()

    assert len(ran) == 2
    assert not torch.allclose(bank.after(*ran), bank.after(*reversed(ran)))
    torch.testing.assert_close(bank.memory, bank.after(*ran))


def test_the_rows_move_at_the_end_of_the_pass_and_not_within(bank):
    x = bank.x.clone()
    seen = []
    x.register_hook(lambda _: seen.append(bank.memory.clone()))
    forward(bank, x).sum().backward()

    assert torch.equal(seen[0], bank.start)
    assert bank.moves == 1


def test_a_backward_pass_that_raised_leaves_the_next_call_alone(bank):
    raising(bank)
    second(bank).sum().backward()

    torch.testing.assert_close(bank.memory, bank.after((bank.x2, bank.y2)))


def test_a_pass_that_raises_in_the_function_itself_leaves_the_next_call_alone(bank):
    logits = forward(bank)
    with torch.no_grad():
        bank.memory[3] += 1  # by something else
    with pytest.raises(RuntimeError, match=r"something other than its own moves has written"):
        logits.sum().backward()
    bank.start = bank.memory.clone()

    forward(bank).sum().backward()
    assert bank.moves == 1


# to what


def test_a_row_moves_towards_its_embedding_to_norm_1():
    memory = torch.tensor([[3.0, 0.0], [0.0, 1.0]])
    move_rows(torch.tensor([[0.0, 2.0]]), torch.tensor([0]), memory, torch.tensor([1.0, 0.5]))

    # normalize((3, 0) / 2 + (0, 2) / 2)
    torch.testing.assert_close(memory, torch.tensor([[1.5, 1.0], [0.0, 1.0]]) / torch.tensor([[3.25**0.5], [1.0]]))


def test_of_repeated_rows_the_last_embedding_wins_from_the_old_row(device):
    memory = torch.tensor([[1.0, 0.0], [0.0, 1.0]], device=device)
    x = torch.tensor([[5.0, 5.0], [1.0, 0.0], [0.0, 1.0]], device=device)
    move_rows(x, torch.tensor([0, 1, 0], device=device), memory, torch.tensor([1.0, 0.5], device=device))

    torch.testing.assert_close(memory, torch.full((2, 2), 0.5**0.5, device=device))


def test_many_repetitions_have_one_result(device):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(500, 3, generator=generator).to(device)
    y = torch.randint(0, 7, (500,), generator=generator).to(device)
    banks = [torch.ones(7, 3, device=device) for _ in range(3)]
    for memory in banks:
        move_rows(x, y, memory, torch.tensor([1.0, 0.5], device=device))
    alone = torch.ones(7, 3, device=device)
    last = [int((y == row).nonzero().max()) for row in range(7)]
    move_rows(x[last], torch.arange(7, device=device), alone, torch.tensor([1.0, 0.5], device=device))

    assert all(torch.equal(memory, alone) for memory in banks)


def test_repeated_rows_are_written_with_one_value(monkeypatch):
    # In what order a GPU writes is not defined, so it must not matter.
    written = []
    monkeypatch.setattr(journal, "write", lambda memory, rows, old, new: written.append(new))
    move_rows(torch.randn(4, 3), torch.tensor([2, 0, 2, 2]), torch.ones(3, 3), PARAMS)

    (new,) = written
    assert torch.equal(new[0], new[3])
    assert torch.equal(new[2], new[3])
    assert not torch.equal(new[1], new[3])


@pytest.mark.parametrize(
    ("row", "embedding"),
    [
        ([0.0, 0.0], [0.0, 0.0]),
        ([1.0, -2.0], [-1.0, 2.0]),
        ([1.0, 2.0], [float("nan"), 0.0]),
        ([1.0, 2.0], [float("inf"), 0.0]),
    ],
    ids=["zero on zero", "one that cancels it", "NaN", "infinity"],
)
def test_a_row_without_a_new_direction_keeps_its_old_value(row, embedding, device):
    memory = torch.tensor([row, [5.0, 5.0]], device=device)
    expected = memory.clone()
    move_rows(
        torch.tensor([embedding], device=device), torch.tensor([0], device=device), memory, torch.tensor([1.0, 0.5])
    )

    assert torch.equal(memory, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_norm_of_half_types_does_not_overflow(dtype, device):
    memory = torch.ones(2, 2, dtype=dtype, device=device)
    x = torch.tensor([[6e4, 6e4]], dtype=dtype, device=device)
    move_rows(x, torch.tensor([1], device=device), memory, torch.tensor([1.0, 0.0], dtype=dtype, device=device))

    torch.testing.assert_close(memory[1].float(), torch.tensor([0.5, 0.5], device=device).sqrt(), rtol=1e-2, atol=0)


def test_the_first_and_the_last_position_of_each_number():
    y = torch.tensor([3, 1, 3, 0, 1, 3])

    assert last_of_each(y).tolist() == [5, 4, 5, 3, 4, 5]
    assert first_of_each(y).tolist() == [0, 1, 0, 3, 1, 0]
    assert last_of_each(y[::2]).tolist() == [1, 1, 2]
    assert last_of_each(y[:0]).tolist() == first_of_each(y[:0]).tolist() == []


# the gradient


def test_the_gradient_of_a_sum(bank):
    # A sum's cotangent is expanded; the published function divides it in place.
    forward(bank).sum().backward()

    torch.testing.assert_close(bank.x.grad, bank.gradient(torch.ones_like(bank.v)))


def test_the_gradient_is_that_of_its_own_forward_pass_whatever_has_moved_since(bank):
    one, two = forward(bank), second(bank)
    two.backward(bank.v, retain_graph=True)
    between = bank.memory.clone()
    three = forward(bank, bank.x2, bank.y)
    two.backward(bank.v)
    one.backward(bank.v, retain_graph=True)
    once = bank.x.grad.clone()
    three.sum().backward()
    one.backward(bank.v)

    assert not torch.allclose(between, bank.start)
    torch.testing.assert_close(once, bank.gradient(bank.v))
    torch.testing.assert_close(bank.x.grad, 2 * bank.gradient(bank.v))
    ones = torch.ones_like(bank.v)
    torch.testing.assert_close(bank.x2.grad, 2 * bank.gradient(bank.v) + bank.gradient(ones, between))


def test_a_second_derivative_after_a_move_is_that_of_the_forward_pass(bank):
    v = bank.v.clone().requires_grad_()
    logits = forward(bank)
    (gradient,) = torch.autograd.grad((v * logits**2).sum() / 2, bank.x, create_graph=True)
    move_rows(bank.x2, bank.y2, bank.memory, bank.params)
    w = torch.linspace(-1, 2, 12, dtype=torch.float64, device=v.device).view(3, 4)
    got = torch.autograd.grad((w * gradient).sum(), (bank.x, v))

    x, u = bank.x.detach().requires_grad_(), v.detach().requires_grad_()
    plain = x @ bank.start.T / bank.params[0]
    (right,) = torch.autograd.grad((u * plain**2).sum() / 2, x, create_graph=True)
    for mine, theirs in zip(got, torch.autograd.grad((w * right).sum(), (x, u)), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_a_third_derivative(bank):
    (first,) = torch.autograd.grad((forward(bank) ** 4).sum(), bank.x, create_graph=True)
    (second_,) = torch.autograd.grad((first**2).sum(), bank.x, create_graph=True)
    (third,) = torch.autograd.grad((second_**2).sum(), bank.x)

    x = bank.x.detach().requires_grad_()
    (first,) = torch.autograd.grad(((x @ bank.start.T / bank.params[0]) ** 4).sum(), x, create_graph=True)
    (second_,) = torch.autograd.grad((first**2).sum(), x, create_graph=True)
    torch.testing.assert_close(third, torch.autograd.grad((second_**2).sum(), x)[0])
    assert bank.moves == 1


def test_two_views_of_one_bank_share_its_journal(bank):
    logits = LinearAverageOp.apply(bank.x, bank.y, bank.memory.detach(), bank.params)
    second(bank).sum().backward()
    logits.backward(bank.v)

    torch.testing.assert_close(bank.x.grad, bank.gradient(bank.v))
    torch.testing.assert_close(bank.memory, bank.after((bank.x2, bank.y2), (bank.x, bank.y)))


@pytest.mark.parametrize("write", ["in place", "copied", "through .data of another"])
def test_another_write_is_found_in_backward(bank, write):
    logits = forward(bank)
    with torch.no_grad():
        if write == "in place":
            bank.memory.mul_(2)
        elif write == "copied":
            bank.memory.copy_(bank.start)
        else:
            bank.memory.data = bank.start.clone()
    with pytest.raises(RuntimeError, match=r"something other than its own moves.*LinearAverage\.update"):
        logits.sum().backward()


def test_another_write_between_two_forwards_is_found_by_the_first_alone(bank):
    one = forward(bank)
    with torch.no_grad():
        bank.memory.mul_(2)
    two = second(bank)
    two.backward(bank.v)

    torch.testing.assert_close(bank.x2.grad, bank.gradient(bank.v, 2 * bank.start))
    with pytest.raises(RuntimeError, match="something other than its own moves"):
        one.sum().backward()


def test_the_cotangent_is_left_alone(bank):
    v = bank.v.clone()
    forward(bank).backward(v)

    assert torch.equal(v, bank.v)
    assert v._version == 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_reaches_neither_the_product_nor_the_move(dtype, device):
    bank = Bank(device, torch.float32)
    x = bank.x.detach().to(dtype).requires_grad_()
    with torch.autocast(device, dtype=dtype):
        logits = forward(bank, x)
        logits.sum().backward()

    assert logits.dtype == bank.memory.dtype == torch.float32
    assert x.grad.dtype == dtype
    assert torch.equal(logits, x.detach().float() @ bank.start.T / bank.params[0])
    torch.testing.assert_close(bank.memory, bank.after((x.float(), bank.y)))


# what is refused


@pytest.mark.parametrize(
    ("transform", "says"),
    [
        (lambda f, x: torch.func.grad(lambda t: f(t).sum())(x), "torch.func or torch.vmap"),
        (lambda f, x: torch.func.vjp(f, x), "torch.func or torch.vmap"),
        (lambda f, x: torch.func.jacrev(f)(x), "torch.func or torch.vmap"),
        (lambda f, x: torch.vmap(f)(torch.stack([x, x])), "torch.func or torch.vmap"),
        (lambda f, x: torch.func.jvp(f, (x,), (x,)), "torch.func or torch.vmap"),
    ],
    ids=["grad", "vjp", "jacrev", "vmap", "jvp"],
)
def test_a_transform_of_torch_func_is_refused(bank, transform, says):
    with pytest.raises(RuntimeError, match=f"LinearAverageOp.apply: .* {says}"):
        transform(lambda x: forward(bank, x), bank.x.detach())
    assert bank.moves == 0


def test_dual_tensors_are_refused(bank):
    with forward_ad.dual_level():
        x = forward_ad.make_dual(bank.x.detach(), bank.x2.detach())
        with pytest.raises(RuntimeError, match="forward mode, which has no backward pass"):
            forward(bank, x)


class Called(torch.nn.Module):
    def __init__(self, bank):
        super().__init__()
        self.bank = bank

    def forward(self, x):
        return forward(self.bank, x)


@pytest.mark.parametrize("strict", [True, False])
def test_export_is_refused(bank, strict):
    with pytest.raises(Exception, match=r"torch\.export, which keeps no backward pass.*evaluation mode") as caught:
        torch.export.export(Called(bank), (bank.x,), strict=strict)
    assert strict or type(caught.value) is RuntimeError


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
def test_nothing_is_read_from_the_device():
    bank = Bank("cuda")
    torch.cuda.set_sync_debug_mode("error")
    try:
        (forward(bank) + second(bank)).sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert bank.moves == 2
