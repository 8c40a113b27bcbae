"""What no law says of the instance-discrimination loss: its paths, its memory, moving banks, further transforms."""

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.utils._python_dispatch import TorchDispatchMode

from forked import python
from gradspec.functions import InstanceDiscriminationLoss, instance_discrimination_loss
from gradspec.functions._instance_discrimination._gradient import hessian_product
from gradspec.functions._linear_cross_entropy import _attention as attention
from gradspec.functions._linear_cross_entropy import _logits as chunked


def given(batch, size, features=4, dtype=torch.float64, device="cpu", seed=0):
    """Return embeddings that need a gradient, their instances, and a bank."""
    generator = torch.Generator().manual_seed(seed)
    x, memory = (torch.randn(n, features, generator=generator, dtype=torch.float64) for n in (batch, size))
    y = torch.randint(size, (batch,), generator=generator)
    return x.to(device, dtype).requires_grad_(), y.to(device), memory.to(device, dtype)


def plain(x, y, memory, temperature=0.5, reduction="mean"):
    return cross_entropy(x @ memory.T / temperature, y, reduction=reduction)


def ours(x, y, memory, temperature=0.5, reduction="mean"):
    return instance_discrimination_loss(x, y, memory, temperature, reduction=reduction)


def both(function, x, *args, **how):
    loss = function(x, *args, **how)
    return loss.detach(), torch.autograd.grad(loss.sum(), x)[0]


def assert_same(got, expected, **how):
    for mine, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(mine, theirs, **how)


class Sizes(TorchDispatchMode):
    """Keeps the largest number of elements of a new tensor that an operation returns, and the operations' names."""

    def __init__(self, *known):
        super().__init__()
        self.known = {tensor.untyped_storage().data_ptr() for tensor in known}
        self.largest, self.names = 0, set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        returned = func(*args, **(kwargs or {}))
        self.names.add(func.overloadpacket.__name__)
        for value in returned if isinstance(returned, tuple | list) else (returned,):
            if isinstance(value, torch.Tensor) and value.untyped_storage().data_ptr() not in self.known:
                self.largest = max(self.largest, value.numel())
        return returned


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("size", [5, 700])
def test_it_is_the_cross_entropy_of_the_logits(size, reduction, device):
    args = given(6, size, device=device)
    assert_same(both(ours, *args, reduction=reduction), both(plain, *args, reduction=reduction))


@pytest.mark.parametrize("batch", [1, 31, 33, 192, 768])
@pytest.mark.parametrize("features", [1, 8, 37])
def test_every_block_of_the_batch_is_right(batch, features, device):
    args = given(batch, 1100, features, device=device)
    assert_same(both(ours, *args, reduction="none"), both(plain, *args, reduction="none"))


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_a_bank_dealt_out_to_the_processors_gives_the_same(monkeypatch, threads):
    monkeypatch.setattr(attention, "SHARE_ROWS", 64)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    args = given(40, 1101)  # two blocks of queries, and a rest of rows for every number of shares but one

    assert attention._shares(args[0], args[2]) == {1: 1, 2: 1, 3: 3, 5: 5}[threads]
    assert_same(both(ours, *args, reduction="none"), both(plain, *args, reduction="none"))


@pytest.mark.parametrize(
    "lay_out", [lambda m: m.T.contiguous().T, lambda m: torch.stack((m, -m), -1)[..., 0]], ids=["transposed", "gaps"]
)
@pytest.mark.parametrize("numbers", [2**21, 600])
def test_a_bank_whose_rows_have_gaps_is_read_in_chunks(monkeypatch, lay_out, numbers):
    monkeypatch.setattr(chunked, "CHUNK_NUMBERS", numbers)
    x, y, memory = given(6, 700)
    assert_same(both(ours, x, y, lay_out(memory)), both(plain, x, y, memory))


@pytest.mark.parametrize("numbers", [2**21, 600])
def test_plain_chunks_give_the_same_as_flash_attention(monkeypatch, numbers):
    args = given(6, 700)
    expected = both(ours, *args)
    monkeypatch.setattr(attention, "_flash_reads", lambda queries, keys, bias: False)
    monkeypatch.setattr(chunked, "CHUNK_NUMBERS", numbers)

    assert_same(both(ours, *args), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", [5, 700])
def test_a_half_type_is_rounded_once(dtype, size, device):
    x, y, memory = given(6, size, dtype=dtype, device=device)
    loss, gradient = both(ours, x, y, memory, reduction="none")
    right = both(plain, x.detach().double().requires_grad_(), y, memory.double(), reduction="none")

    # half a unit of rounding of each element, and float32's own error in front of it
    unit = 0.51 * torch.finfo(dtype).eps
    assert_same((loss.double(), gradient.double()), right, rtol=unit, atol=1e-4 if dtype == torch.float16 else 1e-5)
    assert (loss.dtype, gradient.dtype) == (dtype, dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_no_tensor_has_the_size_of_the_logits(dtype):
    x, y, memory = given(256, 20_000, 16, dtype=dtype)
    with Sizes(x, y, memory) as sizes:
        both(ours, x, y, memory)

    assert "_scaled_dot_product_flash_attention_for_cpu" in sizes.names
    assert sizes.largest <= chunked.CHUNK_NUMBERS < x.shape[0] * len(memory) / 2
    if dtype == torch.float32:
        assert sizes.largest <= x.numel()


def test_one_row_has_no_loss_at_all():
    loss, gradient = both(ours, *given(3, 1), reduction="none")

    assert (loss.tolist(), gradient.any().item()) == ([0.0] * 3, False)


@pytest.mark.slow
@pytest.mark.parametrize("size", [5, 700])
def test_an_empty_batch_is_that_of_cross_entropy(size):
    # In a process of its own: flash attention on no query kills the interpreter.
    script = f"""if True:
        import torch
        from gradspec.functions import instance_discrimination_loss as loss
        x, y = torch.zeros(0, 4, requires_grad=True), torch.zeros(0, dtype=torch.int64)
        memory = torch.randn({size}, 4)
        results = [loss(x, y, memory, 0.07, reduction=how) for how in ("none", "sum", "mean")]
        (gradient,) = torch.autograd.grad(results[1], x)
        print([r.tolist() for r in results], tuple(gradient.shape))
        try:
            loss(torch.zeros(2, 4), torch.zeros(2, dtype=torch.int64), memory[:0], 0.07)
        except ValueError as error:
            print(error)
    """
    done = python("-c", script)

    assert done.returncode == 0, done.stderr
    empty, no_row = done.stdout.splitlines()
    assert empty == "[[], 0.0, nan] (0, 4)"
    assert "the bank has no row" in no_row


@pytest.mark.parametrize("size", [5, 700])
def test_the_gradient_is_that_of_the_bank_in_forward(size):
    x, y, memory = given(6, size)
    expected = both(plain, x, y, memory.clone())[1]
    loss = ours(x, y, memory)
    memory.zero_()

    torch.testing.assert_close(torch.autograd.grad(loss, x)[0], expected)


def test_a_double_backward_raises_once_the_bank_has_moved():
    x, y, memory = given(6, 700)
    (gradient,) = torch.autograd.grad(ours(x, y, memory), x, create_graph=True)
    memory[0] += 1

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        gradient.square().sum().backward()


@pytest.mark.parametrize("size", [5, 700])
@pytest.mark.parametrize("numbers", [2**21, 600])
def test_the_hessian_is_that_of_the_plain_loss(monkeypatch, size, numbers):
    monkeypatch.setattr(chunked, "CHUNK_NUMBERS", numbers)
    x, y, memory = given(2, size, 3)

    def hessian(function, derivative):
        return derivative(torch.func.jacrev(lambda x: function(x, y, memory)))(x.detach())

    expected = hessian(plain, torch.func.jacrev)
    for derivative in (torch.func.jacrev, torch.func.jacfwd):
        torch.testing.assert_close(hessian(ours, derivative), expected)


def test_the_hessian_has_a_derivative(monkeypatch):
    monkeypatch.setattr(chunked, "CHUNK_NUMBERS", 8)
    x, _, memory = given(2, 7, 3)

    assert torch.autograd.gradcheck(lambda x, v: hessian_product(x, memory, 0.5, v), (x, torch.randn_like(x)))


def test_a_first_derivative_makes_no_second_one(monkeypatch):
    def refuse(*args):
        raise AssertionError("the Hessian was computed")

    monkeypatch.setattr("gradspec.functions._instance_discrimination._gradient.hessian_product", refuse)
    x, y, memory = given(6, 700)
    ours(x, y, memory).backward()
    torch.func.grad(lambda x: ours(x, y, memory))(x.detach())


def test_nested_vmap_over_banks_embeddings_and_temperatures():
    x, memory = torch.randn(2, 3, 4, 5).double(), torch.randn(3, 600, 5).double()
    y, temperature = torch.randint(600, (4, 2)), torch.tensor([0.5, 0.7]).double()

    def each(function):
        inner = torch.vmap(lambda x, y, m, t: function(x, y, m, t), in_dims=(0, None, 0, None))
        return torch.vmap(inner, in_dims=(0, 1, None, 0))(x, y, memory, temperature)

    torch.testing.assert_close(each(ours), each(plain))


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("temperature", [0.5, torch.tensor(0.5, dtype=torch.float64)], ids=["float", "tensor"])
def test_it_compiles_as_one_graph(dynamic, temperature):
    torch._dynamo.reset()
    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for batch, size in ((6, 700), (7, 800)):
        args = given(batch, size)
        assert_same(both(compiled, *args, temperature), both(plain, *args, temperature))


def test_a_compiled_region_refuses_an_instance_that_the_bank_does_not_have():
    torch._dynamo.reset()
    x, _, memory = given(2, 700)
    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager")

    with pytest.raises(RuntimeError, match="y is out of range, the bank has rows 0 to 699"):
        compiled(x, torch.tensor([0, 700]), memory)


@pytest.mark.parametrize("size", [5, 700])
def test_under_autocast_it_is_computed_in_the_dtype_of_the_bank(size):
    weight, (x, y, memory) = torch.randn(4, 4, requires_grad=True), given(6, size, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        embedding = x.detach() @ weight
        loss = ours(embedding, y, memory)
    (gradient,) = torch.autograd.grad(loss, embedding)

    assert (embedding.dtype, loss.dtype, gradient.dtype) == (torch.bfloat16, torch.float32, torch.bfloat16)
    wide = embedding.detach().float().requires_grad_()
    expected, right = both(plain, wide, y, memory)
    torch.testing.assert_close(loss.detach(), expected)
    torch.testing.assert_close(gradient, right.bfloat16())


@pytest.mark.parametrize("strict", [True, False])
def test_an_exported_module_has_the_same_loss_and_gradient(strict):
    class Module(torch.nn.Module):
        def forward(self, x, y, memory):
            return ours(x, y, memory)

    args = given(6, 700)
    program = torch.export.export(Module(), args, strict=strict)
    assert_same(both(program.module(), *args), both(plain, *args))


def test_an_unknown_reduction_is_refused():
    with pytest.raises(ValueError, match="reduction is 'average', expected one of 'none', 'mean', 'sum'"):
        ours(*given(2, 5), reduction="average")


def test_a_bank_that_carries_a_tangent_is_refused():
    x, y, memory = given(2, 5)
    with pytest.raises(ValueError, match="memory is differentiated"):
        torch.func.jvp(lambda m: InstanceDiscriminationLoss.apply(x.detach(), y, m, 0.5), (memory,), (memory,))
