"""LinearAverageOp in a compiled region: one graph, the same gradient, and a move for each forward pass."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.checkpoint import checkpoint

from functions.memory_bank import Bank
from gradspec.functions import LinearAverageOp


@pytest.fixture
def bank(device):
    return Bank(device)


def compiled(function, backend="aot_eager", **how):
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, backend=backend, **how)


def call(x, y, memory, params):
    return LinearAverageOp.apply(x, y, memory, params)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_each_call_moves_once_and_has_its_own_gradient(bank, backend):
    function = compiled(call, backend)
    one = function(bank.x, bank.y, bank.memory, bank.params)
    two = function(bank.x2, bank.y2, bank.memory, bank.params)
    two.backward(bank.v, retain_graph=True)
    two.backward(bank.v)
    torch.testing.assert_close(bank.memory, bank.after((bank.x2, bank.y2)))
    one.backward(bank.v)

    torch.testing.assert_close(one, bank.x @ bank.start.T / bank.params[0])
    torch.testing.assert_close(bank.x.grad, bank.gradient(bank.v))
    torch.testing.assert_close(bank.x2.grad, 2 * bank.gradient(bank.v))
    torch.testing.assert_close(bank.memory, bank.after((bank.x2, bank.y2), (bank.x, bank.y)))


def test_two_equal_calls_in_one_graph_move_twice(bank):
    # A compiler takes two calls of equal arguments for one, unless something sets them apart.
    def both(x):
        return call(x, bank.y, bank.memory, bank.params) + call(x, bank.y, bank.memory, bank.params)

    compiled(both)(bank.x).sum().backward()

    torch.testing.assert_close(bank.memory, bank.after((bank.x, bank.y), (bank.x, bank.y)))
    assert not torch.allclose(bank.memory, bank.after((bank.x, bank.y)))


def test_a_loss_in_the_same_graph(bank):
    def loss(x):
        return torch.nn.functional.cross_entropy(call(x, bank.y, bank.memory, bank.params), bank.y)

    got = compiled(loss)(bank.x)
    got.backward()
    x = bank.x.detach().requires_grad_()
    right = torch.nn.functional.cross_entropy(x @ bank.start.T / bank.params[0], bank.y)
    right.backward()

    torch.testing.assert_close(got, right)
    torch.testing.assert_close(bank.x.grad, x.grad)
    assert bank.moves == 1


def test_a_checkpoint_in_the_same_graph_moves_once(bank):
    def forward(x):
        return checkpoint(call, x, bank.y, bank.memory, bank.params, use_reentrant=False)

    compiled(forward)(bank.x).sum().backward()

    torch.testing.assert_close(bank.x.grad, bank.gradient(torch.ones_like(bank.v)))
    assert bank.moves == 1


def test_shapes_that_change(bank):
    function = compiled(call, dynamic=True)
    function(bank.x, bank.y, bank.memory, bank.params).sum().backward()
    function(bank.x2[:2], bank.y2[:2], bank.memory, bank.params).sum().backward()

    torch.testing.assert_close(bank.memory, bank.after((bank.x, bank.y), (bank.x2[:2], bank.y2[:2])))


def test_without_a_gradient_nothing_moves(bank):
    function = compiled(call)
    with torch.no_grad():
        function(bank.x, bank.y, bank.memory, bank.params)
    function(bank.x.detach(), bank.y, bank.memory, bank.params)

    assert bank.moves == 0


def test_a_compiled_and_an_eager_call_keep_each_others_gradient(bank):
    one = compiled(call)(bank.x, bank.y, bank.memory, bank.params)
    two = call(bank.x2, bank.y2, bank.memory, bank.params)
    two.backward(bank.v, retain_graph=True)
    one.backward(bank.v)
    two.backward(bank.v)

    torch.testing.assert_close(bank.x.grad, bank.gradient(bank.v))
    torch.testing.assert_close(bank.x2.grad, 2 * bank.gradient(bank.v))


def test_a_row_past_the_bank_is_found_when_the_graph_runs():
    bank = Bank()
    with pytest.raises(IndexError, match="y holds 5, and the bank has 5 rows"):
        compiled(call)(bank.x, bank.y + 1, bank.memory, bank.params)


def test_autocast_in_the_same_graph(device):
    bank = Bank(device, torch.float32)

    def forward(x):
        with torch.autocast(device, dtype=torch.bfloat16):
            return call(x, bank.y, bank.memory, bank.params)

    logits = compiled(forward)(bank.x)
    logits.backward(bank.v)

    torch.testing.assert_close(logits, bank.x @ bank.start.T / bank.params[0])
    torch.testing.assert_close(bank.x.grad, bank.gradient(bank.v))
    assert bank.moves == 1


def test_a_second_derivative_of_a_compiled_region_is_refused(bank):
    logits = compiled(call)(bank.x, bank.y, bank.memory, bank.params)
    (gradient,) = torch.autograd.grad((logits**2).sum(), bank.x, create_graph=True)
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        (gradient**2).sum().backward()


def test_a_gradient_by_torch_func_in_a_compiled_region_is_refused(bank):
    gradient = torch.func.grad(lambda x: call(x, bank.y, bank.memory, bank.params).sum())
    with pytest.raises(Exception, match=r"LinearAverageOp\.apply: the bank moves at the end of a backward pass"):
        compiled(gradient)(bank.x.detach())
    assert bank.moves == 0


def test_fake_tensors_have_the_shapes_of_real_ones():
    with FakeTensorMode():
        x, y, memory = torch.empty(3, 4, requires_grad=True), torch.zeros(3, dtype=torch.int64), torch.empty(5, 4)
        logits = call(x, y, memory, torch.empty(2))
        logits.sum().backward()

    assert (logits.shape, x.grad.shape) == ((3, 5), (3, 4))
