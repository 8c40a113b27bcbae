"""What no law says of the linear cross-entropy: its options together, its chunks, its memory, moving weights."""

from functools import partial

import pytest
import torch
from torch.nn.functional import cross_entropy, normalize
from torch.utils._python_dispatch import TorchDispatchMode

from gradspec.functions import instance_discrimination_loss, linear_cross_entropy
from gradspec.functions._linear_cross_entropy import _attention as attention
from gradspec.functions._linear_cross_entropy import _by_class as by_class
from gradspec.functions._linear_cross_entropy import _gradients as gradients
from gradspec.functions._linear_cross_entropy import _logits as chunked
from gradspec.functions._linear_cross_entropy import _values


def given(batch, size, features=4, dtype=torch.float64, device="cpu", seed=0):
    """Return rows, a weight and a bias that need a gradient, and classes, of which one does not count."""
    generator = torch.Generator().manual_seed(seed)
    x, weight, bias = (
        torch.randn(*shape, generator=generator, dtype=torch.float64)
        for shape in ((batch, features), (size, features), (size,))
    )
    target = torch.randint(size, (batch,), generator=generator)
    target[0] = -100
    x, weight, bias = (t.to(device, dtype).requires_grad_() for t in (x, weight, bias))
    return x, weight, target.to(device), bias


def ours(x, weight, target, bias, **options):
    return linear_cross_entropy(x, weight, target, bias=bias, **options)


def plain(x, weight, target, bias, temperature=1.0, margin=None, **options):
    logits = x @ weight.T + bias
    if margin is not None:
        logits = logits - margin * torch.nn.functional.one_hot(target.clamp_min(0), len(weight))
    return cross_entropy(logits / temperature, target, **options)


def all_of(function, x, weight, target, bias, **options):
    loss = function(x, weight, target, bias, **options)
    return loss.detach(), *torch.autograd.grad(loss.sum(), (x, weight, bias))


def assert_same(got, expected, **how):
    for mine, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(mine, theirs, **how)


@pytest.fixture
def many_chunks(monkeypatch):
    """Read the weight a few rows at a time, and no weight as a small one."""
    monkeypatch.setattr(chunked, "CHUNK_NUMBERS", 60)
    monkeypatch.setattr(by_class, "CACHED_NUMBERS", 60)
    monkeypatch.setattr(chunked, "KEPT_NUMBERS", -1)
    monkeypatch.setattr(_values, "SMALL_WEIGHT", 0)


class Operations(TorchDispatchMode):
    """Keeps the sizes of the new tensors that operations return, and the names of the operations."""

    def __init__(self, *known):
        super().__init__()
        self.known = {tensor.untyped_storage().data_ptr() for tensor in known}
        self.sizes, self.names = [], []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        returned = func(*args, **(kwargs or {}))
        self.names.append(func.overloadpacket.__name__)
        for value in returned if isinstance(returned, tuple | list) else (returned,):
            if isinstance(value, torch.Tensor) and value.untyped_storage().data_ptr() not in self.known:
                self.sizes.append(value.numel())
        return returned


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("size", [5, 700])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("margin", [None, 0.35])
def test_it_is_the_cross_entropy_of_the_logits(size, reduction, label_smoothing, margin, device):
    args = given(6, size, device=device)
    how = {"reduction": reduction, "label_smoothing": label_smoothing, "margin": margin, "temperature": 0.5}
    assert_same(all_of(ours, *args, **how), all_of(plain, *args, **how))


@pytest.mark.parametrize("margin", [None, 0.35])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("batch", [1, 7, 300])
def test_chunks_give_the_same(many_chunks, batch, margin, label_smoothing):
    args = given(batch, 37)
    how = {"reduction": "none", "margin": margin, "label_smoothing": label_smoothing}
    assert_same(all_of(ours, *args, **how), all_of(plain, *args, **how))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_weight_dealt_out_to_the_processors_gives_the_same(monkeypatch, threads):
    monkeypatch.setattr(attention, "SHARE_ROWS", 64)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    args = given(40, 1103)  # two blocks of rows, and a rest for every number of shares but one
    assert_same(all_of(ours, *args, reduction="none"), all_of(plain, *args, reduction="none"))


def test_chunks_have_the_same_second_derivatives(many_chunks, monkeypatch):
    monkeypatch.setattr(chunked, "CHUNK_NUMBERS", 12)
    monkeypatch.setattr(by_class, "CACHED_NUMBERS", 12)
    x, weight, target, bias = given(3, 9, 2)
    margin = torch.randn(3, dtype=torch.float64, requires_grad=True)

    def loss(x, weight, bias, margin):
        return ours(x, weight, target, bias, margin=margin, label_smoothing=0.1, reduction="none")

    inputs = (x, weight, bias, margin)
    assert torch.autograd.gradcheck(loss, inputs, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(loss, inputs, check_fwd_over_rev=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", [5, 700])
def test_a_half_type_is_rounded_once(dtype, size, device):
    x, weight, target, bias = given(6, size, dtype=dtype, device=device)
    got = all_of(ours, x, weight, target, bias, reduction="none")
    wide = (t.detach().double().requires_grad_() for t in (x, weight, bias))
    x, weight, bias = wide
    right = all_of(plain, x, weight, target, bias, reduction="none")

    # half a unit of rounding of each element, and float32's own error in front of it
    unit = 0.51 * torch.finfo(dtype).eps
    assert {t.dtype for t in got} == {dtype}
    assert_same([t.double() for t in got], right, rtol=unit, atol=1e-4 if dtype == torch.float16 else 2e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_no_tensor_has_the_size_of_the_logits(dtype):
    x, weight, target, bias = given(256, 20_000, 64, dtype=dtype)
    with Operations(x, weight, target, bias) as seen:
        all_of(ours, x, weight, target, bias)

    assert max(seen.sizes) <= chunked.CHUNK_NUMBERS < len(x) * len(weight) / 2
    if dtype == torch.float32:
        assert max(seen.sizes) == weight.numel()  # its gradient


def test_a_frozen_weight_costs_two_products():
    x, weight, target, _ = given(8, 700)
    with Operations() as seen:
        linear_cross_entropy(x, weight.detach(), target).backward()

    assert seen.names.count("_scaled_dot_product_flash_attention_for_cpu") == 1
    assert not {"mm", "addmm", "bmm"} & set(seen.names)


@pytest.mark.parametrize(("size", "features"), [(5, 4), (700, 8)])
@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1, "margin": 0.3, "temperature": 0.5}])
def test_few_logits_are_kept_for_the_gradients_by_the_weight_and_the_bias(monkeypatch, size, features, options):
    args = given(6, size, features)
    monkeypatch.setattr(gradients, "by_class", None)  # computes the logits again

    assert_same(all_of(ours, *args, **options), all_of(plain, *args, **options))


@pytest.mark.parametrize("asked", [True, False])
def test_logits_are_kept_only_for_a_gradient_by_the_weight_or_the_bias(asked):
    x, weight, target, _ = given(6, 700, 8)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.shape) or t, lambda t: t):
        linear_cross_entropy(x, weight.requires_grad_(asked), target)

    assert ((6, 700) in kept) == asked


@pytest.mark.parametrize("function", [linear_cross_entropy, partial(instance_discrimination_loss, temperature=1.0)])
def test_where_one_class_is_certain_the_second_derivative_is_as_small_as_its_doubt(function):
    # Of p = (1, e^-60, e^-60) the Hessian is near 1e-26 times products of keys, which are near 1e4 themselves.
    keys = torch.tensor([[60.0, 91.0], [0.0, 13.0], [0.0, -88.0]], dtype=torch.float64)
    x = torch.tensor([[1.0, 0.0]], dtype=torch.float64, requires_grad=True)
    call = (x, keys, torch.tensor([1])) if function is linear_cross_entropy else (x, torch.tensor([1]), keys)
    (gradient,) = torch.autograd.grad(function(*call), x, create_graph=True)
    (second,) = torch.autograd.grad(gradient @ torch.tensor([0.7, 0.9], dtype=torch.float64), x)

    p = (x.detach() @ keys.T).softmax(-1)
    centred = keys - keys[0]  # by hand: of the other classes, whose p is what there is of a covariance
    right = (p.T * centred).T @ centred @ torch.tensor([0.7, 0.9], dtype=torch.float64)
    torch.testing.assert_close(second[0], right, rtol=1e-12, atol=0)


def test_the_first_derivative_makes_no_second_one(monkeypatch):
    def refuse(*args):
        raise AssertionError("the second derivative was computed")

    monkeypatch.setattr(gradients, "second_order", refuse)
    args = given(6, 700)
    all_of(ours, *args)
    x, weight, target, bias = (t.detach() for t in args)
    torch.func.grad(ours, argnums=(0, 1, 3))(x, weight, target, bias)


def test_a_weight_that_moves_before_the_backward_pass_is_refused():
    x, weight, target, bias = given(6, 700)
    loss = ours(x, weight, target, bias)
    with torch.no_grad():
        weight[0] += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_no_row_that_counts_is_that_of_cross_entropy(reduction):
    x, weight, _, bias = given(3, 5)
    none = torch.full((3,), -100)
    got = all_of(ours, x, weight, none, bias, reduction=reduction)
    assert_same(got, all_of(plain, x, weight, none, bias, reduction=reduction), equal_nan=True)


def test_a_margin_of_arcface():
    x, weight, target, _ = given(6, 20)
    target[0] = 3

    def cosines():
        return normalize(x), normalize(weight)

    def ours_():
        rows, classes = cosines()
        cosine = (rows * classes[target]).sum(1)
        margin = cosine - torch.cos(torch.acos(cosine) + 0.5)
        return linear_cross_entropy(rows, classes, target, margin=margin, temperature=1 / 64)

    def theirs():
        rows, classes = cosines()
        logits = rows @ classes.T
        own = torch.nn.functional.one_hot(target, 20).bool()
        return cross_entropy(torch.where(own, torch.cos(torch.acos(logits) + 0.5), logits) * 64, target)

    got, expected = ((loss, *torch.autograd.grad(loss, (x, weight))) for loss in (ours_(), theirs()))
    assert_same(got, expected)


def test_nested_vmap_over_weights_rows_and_temperatures():
    x, weight = torch.randn(2, 3, 4, 5).double(), torch.randn(3, 600, 5).double()
    target, temperature = torch.randint(600, (4, 2)), torch.tensor([0.5, 0.7]).double()
    bias = torch.zeros(600).double()

    def each(function):
        def loss(x, w, y, t):
            return function(x, w, y, bias, temperature=t, reduction="none").sum()

        inner = torch.vmap(torch.func.grad(loss, argnums=(0, 1)), in_dims=(0, 0, None, None))
        return torch.vmap(inner, in_dims=(0, None, 1, 0))(x, weight, target, temperature)

    assert_same(each(ours), each(plain))


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [False, True])
def test_it_compiles_as_one_graph(dynamic):
    torch._dynamo.reset()
    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for batch, size in ((6, 700), (7, 800)):
        args = given(batch, size)
        assert_same(all_of(compiled, *args, label_smoothing=0.1), all_of(plain, *args, label_smoothing=0.1))


def test_a_compiled_region_refuses_a_class_that_the_weight_does_not_have():
    torch._dynamo.reset()
    x, weight, _, bias = given(2, 700)
    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager")

    with pytest.raises(RuntimeError, match="target is out of range, the weight has rows 0 to 699"):
        compiled(x, weight, torch.tensor([0, 700]), bias)


def test_under_autocast_it_is_computed_in_the_dtype_of_the_weight():
    layer, (x, weight, target, bias) = torch.randn(4, 4, requires_grad=True), given(6, 700, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rows = x.detach() @ layer
        loss = ours(rows, weight, target, bias)
    of_rows, of_weight = torch.autograd.grad(loss, (rows, weight))

    assert (rows.dtype, loss.dtype, of_rows.dtype, of_weight.dtype) == (
        torch.bfloat16,
        torch.float32,
        torch.bfloat16,
        torch.float32,
    )
    wide = rows.detach().float().requires_grad_()
    expected, right, right_weight, _ = all_of(plain, wide, weight, target, bias)
    assert_same((loss.detach(), of_rows, of_weight), (expected, right.bfloat16(), right_weight))


@pytest.mark.parametrize("strict", [True, False])
def test_an_exported_module_has_the_same_loss_and_gradients(strict):
    class Module(torch.nn.Module):
        def forward(self, x, weight, target, bias):
            return ours(x, weight, target, bias, margin=0.1)

    args = given(6, 700)
    program = torch.export.export(Module(), args, strict=strict)
    assert_same(all_of(program.module(), *args), all_of(plain, *args, margin=0.1))


def test_the_bank_ignores_no_row():
    x, memory, y, _ = (t.detach() for t in given(2, 5))
    with pytest.raises(IndexError, match="y holds -100, and the bank has rows 0 to 4"):
        instance_discrimination_loss(x, y, memory, 0.5)


def test_an_unknown_reduction_is_refused():
    with pytest.raises(ValueError, match="reduction is 'average', expected one of 'none', 'mean', 'sum'"):
        ours(*given(2, 5), reduction="average")


def test_a_jacobian_of_no_row_is_differentiated_as_that_of_torch():
    x, weight, target = torch.zeros(0, 2), torch.ones(3, 2), torch.zeros(0, dtype=torch.int64)
    for loss in (ours, plain):
        jacobian = torch.func.jacrev(lambda w, loss=loss: loss(x, w, target, torch.zeros(3), reduction="none"))
        of_it = torch.func.grad(lambda w, jacobian=jacobian: jacobian(w).sum())(weight)
        assert jacobian(weight).shape == (0, 3, 2)
        assert of_it.tolist() == [[0.0, 0.0]] * 3


def test_a_compiled_backward_pass_is_one_graph():
    x, weight = (torch.randn(shape, requires_grad=True) for shape in ((3, 8), (5, 8)))
    loss = linear_cross_entropy(x, weight, torch.tensor([0, 1, 2])).sum()
    expected = torch.autograd.grad(loss, (x, weight), retain_graph=True)
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager", fullgraph=True)):
        loss.backward()

    for leaf, right in zip((x, weight), expected, strict=True):
        torch.testing.assert_close(leaf.grad, right)
