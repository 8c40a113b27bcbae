"""What a memory bank keeps while a graph is pending, and that it keeps nothing else: no copy of itself, no old row."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from functions.memory_bank import Bank
from gradspec.functions import LinearAverageOp
from gradspec.functions._linear_average import _journal as journal
from gradspec.functions._linear_average import _pending as pending
from gradspec.functions._linear_average._bank import move_rows
from gradspec.functions._linear_average._journal import State


@pytest.fixture(scope="module", autouse=True)
def _what_there_is_stays():
    """A search for cycles in a test visits what the tests of this file make, and not what others left."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def without_collector():
    """What is freed is freed by its last reference, not by the garbage collector."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def bank():
    return Bank()


def forward(bank, x=None):
    return LinearAverageOp.apply(bank.x if x is None else x, bank.y, bank.memory, bank.params)


def states():
    return len(journal._LAST)


def kept_rows(logits):
    """Return the number of old rows that the graph of some logits keeps."""
    state, rows = logits.grad_fn.pending.seen.state, 0
    while state is not None:
        rows += 0 if state.old is None else len(state.old)
        state = state.after
    return rows


def test_a_bank_that_no_graph_waits_for_has_no_journal(bank):
    logits = forward(bank)
    assert states() == 1
    del logits
    assert states() == 0
    move_rows(bank.x, bank.y, bank.memory, bank.params)
    assert states() == 0


def test_a_graph_that_has_run_keeps_nothing_though_its_loss_lives(bank):
    loss = forward(bank).sum()
    loss.backward()

    assert states() == 0
    move_rows(bank.x, bank.y, bank.memory, bank.params)
    assert states() == 0
    assert loss.grad_fn is not None


def test_a_pending_graph_keeps_the_rows_that_move_and_no_more(bank):
    logits = forward(bank)
    for moves in range(1, 4):
        move_rows(bank.x, bank.y, bank.memory, bank.params)
        assert kept_rows(logits) == moves * len(bank.y)


def test_old_rows_die_with_the_last_graph_that_may_ask_for_them(bank):
    one = forward(bank)
    first = weakref.ref(one.grad_fn.pending.seen.state)
    move_rows(bank.x, bank.y, bank.memory, bank.params)
    two = forward(bank)
    between = weakref.ref(two.grad_fn.pending.seen.state)
    move_rows(bank.x2, bank.y2, bank.memory, bank.params)

    assert (kept_rows(one), kept_rows(two)) == (6, 3)
    del one
    assert first() is None
    assert isinstance(between(), State)
    del two
    assert between() is None
    assert states() == 0


def test_a_retained_graph_keeps_its_rows_until_it_is_freed(bank):
    logits = forward(bank)
    logits.sum().backward(retain_graph=True)
    assert kept_rows(logits) == len(bank.y)
    logits.sum().backward()
    assert states() == 0


def test_a_second_derivative_keeps_what_it_needs_until_it_is_freed(bank):
    (gradient,) = torch.autograd.grad((forward(bank) ** 2).sum(), bank.x, create_graph=True)
    assert states() == 1
    (gradient**2).sum().backward()
    del gradient
    assert states() == 0


def test_a_pass_that_raises_leaves_nothing_behind(bank):
    def fail(_):
        raise ArithmeticError

    x = bank.x.clone()
    x.register_hook(fail)
    logits = forward(bank, x)
    with pytest.raises(ArithmeticError):
        logits.sum().backward()
    del logits, x
    gc.collect()  # the traceback holds frames
    assert states() == 0


def test_a_loop_does_not_grow(bank):
    loss = None
    for _ in range(20):
        loss = forward(bank).sum()
        loss.backward()
        assert states() == 0
    assert loss is not None


def test_the_bank_and_its_tensor_die(bank):
    logits = forward(bank)
    logits.sum().backward()
    reference = weakref.ref(bank.memory)
    del bank.memory, logits
    assert reference() is None


def test_a_compiled_graph_keeps_a_ticket_until_it_is_freed(bank):
    torch._dynamo.reset()
    function = torch.compile(lambda x: forward(bank, x), fullgraph=True, backend="aot_eager")
    logits = function(bank.x)
    assert (len(pending._TICKETS), states()) == (1, 1)
    logits.sum().backward(retain_graph=True)
    assert (len(pending._TICKETS), states()) == (1, 1)
    logits.sum().backward()
    assert (len(pending._TICKETS), states()) == (0, 0)
    logits = function(bank.x)
    del logits
    assert (len(pending._TICKETS), states()) == (0, 0)


class Largest(TorchDispatchMode):
    """Records the largest storage that any operation makes."""

    def __init__(self, known):
        super().__init__()
        self.known, self.bytes = known.untyped_storage().data_ptr(), 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else (made,):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage().data_ptr() != self.known:
                self.bytes = max(self.bytes, tensor.untyped_storage().nbytes())
        return made


def test_no_operation_makes_anything_of_the_size_of_the_bank():
    # 2 x 10_000 logits are 80 kB, the bank is 2.5 MB.
    memory, params = torch.ones(10_000, 64), torch.tensor([0.5, 0.5])
    x, y = torch.ones(2, 64, requires_grad=True), torch.tensor([7, 9_999])
    with Largest(memory) as largest:
        one = LinearAverageOp.apply(x, y, memory, params)
        two = LinearAverageOp.apply(x, y, memory, params)
        two.sum().backward()
        (gradient,) = torch.autograd.grad((one**2).sum(), x, create_graph=True)
        (gradient**2).sum().backward()

    assert 2 * 10_000 * 4 <= largest.bytes < 200_000
