"""What no law says of ShakeShake: the noise itself, its modes, its replays, and every transform that draws."""

import itertools

import pytest
import torch
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

from gradspec.functions import ShakeShake, mix_branches, shake_shake
from gradspec.functions._shake_shake import _mix as mixing

FORWARD = ("even", "shake")
BACKWARD = ("even", "shake", "keep")
LEVEL = ("batch", "image")


def branches(*shape, dtype=torch.float64, device="cpu"):
    """Ones and zeros: the output is alpha, and the first gradient of a sum is beta."""
    x1 = torch.ones(shape, dtype=dtype, device=device, requires_grad=True)
    return x1, torch.zeros(shape, dtype=dtype, device=device, requires_grad=True)


def noise(function, *shape, seed=0, **how):
    """Return alpha and beta as a call shows them, and check that the two gradients partition the cotangent."""
    torch.manual_seed(seed)
    x1, x2 = branches(*shape, **how)
    y = function(x1, x2)
    y.sum().backward()
    assert torch.equal(x2.grad, 1 - x1.grad)
    return y.detach(), x1.grad


def compiled(function):
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, backend="aot_eager")


class Exported(torch.nn.Module):
    def __init__(self, training):
        super().__init__()
        self.shaken = training

    def forward(self, x1, x2):
        return ShakeShake.apply(x1, x2, self.shaken)


def exported(strict, training=True):
    program = torch.export.export(Exported(training), tuple(branches(4, 3)), strict=strict)
    return program.module()


@pytest.mark.parametrize(("forward", "backward", "level"), list(itertools.product(FORWARD, BACKWARD, LEVEL)))
def test_each_mode_draws_what_its_name_says(forward, backward, level):
    alpha, beta = noise(lambda x1, x2: shake_shake(x1, x2, forward=forward, backward=backward, level=level), 5, 3, 2, 2)

    numbers = {"batch": 1, "image": 5}[level]
    assert alpha.unique().numel() == (1 if forward == "even" else numbers)
    assert beta.unique().numel() == {"even": 1, "shake": numbers, "keep": alpha.unique().numel()}[backward]
    assert bool((alpha == 0.5).all()) == (forward == "even")
    assert bool((beta == 0.5).all()) == (backward == "even" or (backward, forward) == ("keep", "even"))
    assert torch.equal(alpha, beta) == (backward == "keep" or (forward, backward) == ("even", "even"))


def test_the_default_is_the_published_mode():
    for ours, theirs in zip(noise(shake_shake, 4, 3), noise(ShakeShake.apply, 4, 3), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("backward", ["even", "keep"])
def test_what_is_not_shaken_is_not_drawn(backward):
    torch.manual_seed(0)
    shake_shake(*branches(4, 3), backward=backward)
    after = torch.rand(1)
    torch.manual_seed(0)
    torch.rand(4, 1, dtype=torch.float64)

    assert torch.equal(after, torch.rand(1))


def test_alpha_is_drawn_first_then_beta():
    alpha, beta = noise(ShakeShake.apply, 4, 3)

    torch.manual_seed(0)
    expected = [torch.rand(4, 1, dtype=torch.float64).expand(4, 3) for _ in range(2)]
    assert torch.equal(alpha, expected[0])
    assert torch.equal(beta, expected[1])


def test_the_noise_is_uniform_and_independent():
    alpha, beta = (weight[:, 0] for weight in noise(ShakeShake.apply, 10_000, 1))

    # Five standard errors: 1/sqrt(12 n) of a mean, 1/sqrt(180 n) of a variance, 1/sqrt(n) of a correlation.
    n = 10_000
    for weight in (alpha, beta):
        assert weight.min() >= 0
        assert weight.max() < 1
        assert abs(weight.mean() - 1 / 2) < 5 / (12 * n) ** 0.5
        assert abs(weight.var() - 1 / 12) < 5 / (180 * n) ** 0.5
        assert abs(torch.corrcoef(torch.stack([weight[:-1], weight[1:]]))[0, 1]) < 5 / n**0.5
    assert abs(torch.corrcoef(torch.stack([alpha, beta]))[0, 1]) < 5 / n**0.5


def test_a_seed_replays_values_and_gradients():
    first, again, other = (noise(ShakeShake.apply, 4, 3, seed=seed) for seed in (7, 7, 8))

    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, other, strict=True))


def test_a_generator_replays_and_leaves_that_of_torch_alone():
    x1, x2 = branches(4, 3)
    state = torch.get_rng_state()
    first, again = (shake_shake(x1, x2, generator=torch.Generator().manual_seed(3)) for _ in range(2))

    assert torch.equal(first, again)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_second_backward_pass_has_the_same_gradient():
    x1, x2 = branches(4, 3)
    total = ShakeShake.apply(x1, x2).sum()
    first = torch.autograd.grad(total, (x1, x2), retain_graph=True)
    second = torch.autograd.grad(total, (x1, x2))

    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_checkpointing_changes_nothing():
    plain = noise(ShakeShake.apply, 4, 3)
    saved = noise(lambda x1, x2: checkpoint(ShakeShake.apply, x1, x2, use_reentrant=False), 4, 3)

    assert all(torch.equal(a, b) for a, b in zip(plain, saved, strict=True))


@pytest.mark.parametrize("way", [lambda f: f, compiled], ids=["eager", "compile"])
@pytest.mark.parametrize("function", [ShakeShake.apply, shake_shake], ids=["apply", "shake_shake"])
def test_evaluation_is_the_mean_draws_nothing_and_halves_the_gradient(function, way):
    state = torch.get_rng_state()
    x1, x2 = branches(4, 3)
    y = way(lambda x1, x2: function(x1, x2, False))(x1, x2)
    y.sum().backward()

    assert all(bool((value == 0.5).all()) for value in (y, x1.grad, x2.grad))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("function", [ShakeShake.apply, shake_shake], ids=["apply", "shake_shake"])
def test_training_without_grad_mixes_all_the_same(function):
    with torch.no_grad():
        y = function(*branches(4, 3))

    assert y.unique().numel() == 4


def test_infinities_pass():
    inf = torch.full((2, 1), float("inf"))

    assert mix_branches(inf, torch.ones(2, 1), 0.5, 0.5).tolist() == [[float("inf")]] * 2
    assert mix_branches(torch.ones(2, 1), -inf, 0.5, 0.5).tolist() == [[-float("inf")]] * 2


@pytest.mark.parametrize(("randomness", "numbers"), [("different", 5), ("same", 1)])
def test_vmap_draws_as_torch_says(randomness, numbers):
    torch.manual_seed(0)
    one = torch.vmap(lambda x1, x2: shake_shake(x1, x2, level="batch"), randomness=randomness)

    assert one(torch.ones(5, 3), torch.zeros(5, 3)).unique().numel() == numbers


def test_vmap_refuses_to_draw_unless_told():
    with pytest.raises(RuntimeError, match="randomness"):
        torch.vmap(ShakeShake.apply)(torch.ones(2, 5, 3), torch.zeros(2, 5, 3))


@pytest.mark.parametrize("function", [ShakeShake.apply, shake_shake], ids=["apply", "shake_shake"])
def test_a_compiled_call_shakes_anew_each_time(function):
    call = compiled(lambda x1, x2: function(x1, x2))
    alpha, beta = noise(call, 4, 3)
    other, _ = noise(call, 4, 3, seed=1)

    assert (alpha.unique().numel(), beta.unique().numel()) == (4, 4)
    assert not torch.equal(alpha, beta)
    assert not torch.equal(alpha, other)


def test_a_compiled_call_takes_one_tensor_twice():
    x = torch.ones(2, 3, requires_grad=True)
    compiled(lambda x: shake_shake(x, x, backward="keep"))(x).sum().backward()

    torch.testing.assert_close(x.grad, torch.ones(2, 3))


@pytest.mark.parametrize("way", [lambda f: f, compiled], ids=["eager", "compile"])
def test_func_grad_has_one_beta_a_sample(way):
    torch.manual_seed(0)
    gradient = way(torch.func.grad(lambda x1, x2: ShakeShake.apply(x1, x2).sum(), argnums=(0, 1)))
    x1_bar, x2_bar = gradient(torch.ones(4, 3), torch.zeros(4, 3))

    assert x1_bar.unique().numel() == 4
    assert torch.equal(x2_bar, 1 - x1_bar)


def test_forward_mode_takes_beta():
    alpha, beta = noise(ShakeShake.apply, 4, 3)
    x1, x2 = (x.detach() for x in branches(4, 3))
    for tangents, expected in (((x1, x2), beta), ((x2, x1), 1 - beta)):
        torch.manual_seed(0)
        value, tangent = torch.func.jvp(ShakeShake.apply, (x1, x2), tangents)
        assert torch.equal(value, alpha)
        assert torch.equal(tangent, expected)


def test_forward_mode_takes_beta_where_one_branch_has_a_tangent():
    alpha, beta = noise(ShakeShake.apply, 4, 3)
    x1, x2 = (x.detach() for x in branches(4, 3))
    for first, expected in ((True, beta), (False, 1 - beta)):
        torch.manual_seed(0)
        with forward_ad.dual_level():
            one = forward_ad.make_dual(x1 if first else x2, x1)
            dual = forward_ad.unpack_dual(ShakeShake.apply(one, x2) if first else ShakeShake.apply(x1, one))
        assert torch.equal(dual.primal, alpha)
        assert torch.equal(dual.tangent, expected)


@pytest.mark.parametrize("strict", [True, False])
def test_an_exported_module_keeps_both_noises(strict):
    torch.manual_seed(0)
    x1, x2 = branches(4, 3)
    y = exported(strict)(x1, x2)
    y.sum().backward()

    assert (y.unique().numel(), x1.grad.unique().numel()) == (4, 4)
    assert not torch.allclose(y, x1.grad)
    torch.testing.assert_close(x1.grad + x2.grad, torch.ones(4, 3, dtype=torch.float64))


@pytest.mark.parametrize("strict", [True, False])
def test_an_exported_module_in_evaluation_halves(strict):
    y, x1_bar = noise(exported(strict, training=False), 4, 3)

    assert (y.unique().tolist(), x1_bar.unique().tolist()) == ([0.5], [0.5])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_the_dtype_is_kept_and_a_half_type_draws_in_float32(dtype):
    alpha, beta = noise(ShakeShake.apply, 4, 3, dtype=dtype)

    torch.manual_seed(0)
    drawn = torch.rand(4, 1, dtype=torch.float64 if dtype == torch.float64 else torch.float32)
    assert torch.equal(alpha, drawn.to(dtype).expand(4, 3))

    assert (alpha.dtype, beta.dtype) == (dtype, dtype)


def test_autocast_keeps_the_dtype_of_the_branches():
    weight = torch.ones(3, 3, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        branch = torch.ones(4, 3) @ weight
        y = ShakeShake.apply(branch, branch * 2)
    y.sum().backward()

    assert (y.dtype, weight.grad.dtype) == (torch.bfloat16, torch.float32)


def test_no_gradient_goes_to_a_branch_that_needs_none():
    x1, x2 = branches(4, 3)
    x2.requires_grad_(False)
    ShakeShake.apply(x1, x2).sum().backward()

    assert x2.grad is None
    assert x1.grad.unique().numel() == 4


@pytest.mark.parametrize("option", ["forward", "backward", "level"])
def test_an_unknown_option_is_refused_with_the_choices(option):
    choices = {"forward": FORWARD, "backward": BACKWARD, "level": LEVEL}[option]
    with pytest.raises(ValueError, match=f"{option} is 'shook', expected one of {', '.join(map(repr, choices))}"):
        shake_shake(*branches(4, 3), False, **{option: "shook"})


@pytest.mark.parametrize("function", [ShakeShake.apply, shake_shake], ids=["apply", "shake_shake"])
@pytest.mark.parametrize(
    ("x1", "x2", "error", "match"),
    [
        (torch.ones(4, 3), torch.ones(1, 3), ValueError, r"\(4, 3\) and \(1, 3\)"),
        (torch.ones(4), torch.ones(4).double(), ValueError, "float32 and torch.float64"),
        (torch.ones(4), torch.ones(4, device="meta"), ValueError, "cpu and meta"),
        (torch.ones(4).int(), torch.ones(4).int(), TypeError, "int32, expected a floating one"),
        (torch.ones(4) * 1j, torch.ones(4) * 1j, TypeError, "complex64, expected a floating one"),
        (torch.ones(4), 1.0, TypeError, "x2 is a float, expected a tensor"),
        (torch.ones(()), torch.ones(()), ValueError, "expected a batch first"),
    ],
    ids=["shapes", "dtypes", "devices", "integers", "complex", "no tensor", "no batch"],
)
def test_wrong_branches_are_refused(function, x1, x2, error, match):
    with pytest.raises(error, match=match):
        function(x1, x2)


def test_a_batch_weight_needs_no_dimension():
    alpha, beta = noise(lambda x1, x2: shake_shake(x1, x2, level="batch"))

    assert alpha.shape == beta.shape == ()


def test_one_weight_of_two_is_refused():
    with pytest.raises(TypeError, match="two weights, alpha and beta, got 1"):
        ShakeShake.apply(*branches(4, 3), True, 0.5)


def test_weights_are_cast_to_the_dtype_of_the_branches():
    x1, x2 = branches(2, 3, dtype=torch.float32)
    y = mix_branches(x1, x2, torch.tensor(0.25, dtype=torch.float64), 0.75)

    assert (y.dtype, y.unique().tolist()) == (torch.float32, [0.25])


def test_a_generator_is_refused_under_compile():
    generator = torch.Generator()
    with pytest.raises(Exception, match=r"a generator is given under torch\.compile"):
        compiled(lambda x1, x2: shake_shake(x1, x2, generator=generator))(*branches(4, 3))


def test_evaluation_ignores_given_weights():
    y, x1_bar = noise(lambda x1, x2: ShakeShake.apply(x1, x2, False, 0.25, 0.75), 4, 3)

    assert (y.unique().tolist(), x1_bar.unique().tolist()) == ([0.5], [0.5])


def allocated(function):
    """Return the bytes that a call allocates, those freed again before its end included."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        function()
    return sum(max(0, event.self_cpu_memory_usage) for event in profile.events())


@pytest.mark.parametrize("weight", [0.3, 0.5, (), (1, 1, 1), (7, 1, 1), (7, 3, 4)], ids=str)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "expanded"])
def test_values_are_those_of_the_formula_bit_for_bit(weight, dtype, large, layout, monkeypatch):
    if large:
        monkeypatch.setattr(mixing, "LARGE_BYTES", 0)
    torch.manual_seed(0)
    x1, x2 = torch.randn(2, 7, 3, 4, dtype=dtype)
    if layout == "transposed":
        x2 = x2.mT.contiguous().mT
    if layout == "expanded":
        x1, x2 = x1[:1].expand_as(x1), x2[:, :1].expand_as(x2)
    if isinstance(weight, tuple):
        weight = torch.rand(weight, dtype=dtype)

    assert torch.equal(mix_branches(x1, x2, weight, 0.5), weight * x1 + (1 - weight) * x2)


@pytest.mark.parametrize("batch", [1, 2, 4, 5])
def test_a_large_batch_of_any_length_is_mixed_whole(batch, monkeypatch):
    monkeypatch.setattr(mixing, "LARGE_BYTES", 0)
    alpha, beta = noise(ShakeShake.apply, batch, 3)

    torch.manual_seed(0)
    assert torch.equal(alpha, torch.rand(batch, 1, dtype=torch.float64).expand(batch, 3))
    assert alpha.shape == beta.shape


def test_a_large_forward_pass_allocates_its_output_and_a_slice():
    x1, x2 = branches(64, mixing.LARGE_BYTES // 256, dtype=torch.float32)

    assert allocated(lambda: ShakeShake.apply(x1, x2)) < 1.3 * x1.nbytes


@pytest.mark.parametrize("needed", [1, 2])
def test_a_backward_pass_allocates_the_gradients_that_are_needed(needed):
    x1, x2 = branches(64, 1024, dtype=torch.float32)
    y, wrt = ShakeShake.apply(x1, x2.requires_grad_(needed == 2)), (x1, x2)[:needed]
    cotangent = torch.ones_like(y)

    assert needed <= allocated(lambda: torch.autograd.grad(y, wrt, cotangent)) / x1.nbytes < needed + 0.1


@pytest.mark.parametrize("mapped", [0, 1])
def test_vmap_over_one_branch_alone_mixes_it_with_the_other(mapped):
    torch.manual_seed(0)
    many, one = torch.randn(5, 4, 3), torch.randn(4, 3)
    dims = (0, None) if mapped == 0 else (None, 0)
    args = (many, one) if mapped == 0 else (one, many)

    y = torch.vmap(lambda x1, x2: mix_branches(x1, x2, 0.25, 0.5), in_dims=dims)(*args)
    assert torch.equal(y, 0.25 * args[0] + 0.75 * args[1])
