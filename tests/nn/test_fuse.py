"""What `fuse_for_inference` returns: the same numbers as the network in evaluation, and nothing that can be trained."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn

from gradspec.nn import ShakeBlock
from gradspec.nn._shake._fused import Fused
from nn.networks import MODULES, PARAMETERS, images

if TYPE_CHECKING:
    from torch import Tensor


@pytest.fixture(params=PARAMETERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def module(name: str) -> Any:
    """A module in evaluation, whose batch norms are not what they start as."""
    torch.manual_seed(0)
    module = MODULES[name][0]()
    for norm in module.modules():
        if isinstance(norm, nn.BatchNorm2d):
            norm.running_mean.normal_(0, 0.5)
            norm.running_var.uniform_(0.5, 2)
            nn.init.uniform_(norm.weight, -1.5, 1.5)
            nn.init.normal_(norm.bias, 0, 0.5)
    return module.eval()


@pytest.fixture
def x(name: str) -> Tensor:
    return images(*MODULES[name][1])


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_the_output_is_that_of_evaluation(module: Any, x: Tensor, dtype: torch.dtype, tolerance: float) -> None:
    expected = module.to(dtype)(x.to(dtype))
    torch.testing.assert_close(module.fuse_for_inference()(x.to(dtype)), expected, rtol=tolerance, atol=tolerance)


def test_the_gradient_of_the_input_is_that_of_evaluation(module: Any, x: Tensor) -> None:
    x = x.double().requires_grad_()
    module.double()
    y = module(x)
    cotangent = images(*y.shape, seed=1).double()
    (expected,) = torch.autograd.grad(y, x, cotangent)
    (got,) = torch.autograd.grad(module.fuse_for_inference()(x), x, cotangent)
    torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-10)


def test_a_module_in_training_is_fused_as_it_would_evaluate(module: Any, x: Tensor) -> None:
    expected = module(x)
    torch.testing.assert_close(module.train().fuse_for_inference()(x), expected, rtol=1e-5, atol=1e-5)


def test_fusing_touches_no_state_mode_or_generator(module: Any, x: Tensor) -> None:
    module.train()
    state, generator = copy.deepcopy(module.state_dict()), torch.get_rng_state()
    module.fuse_for_inference()(x)
    assert all(m.training for m in module.modules())
    assert torch.equal(torch.get_rng_state(), generator)
    assert all(torch.equal(value, state[key]) for key, value in module.state_dict().items())
    assert all(p.requires_grad and p.grad is None for p in module.parameters())


def test_what_is_fused_shares_no_memory_with_its_module(module: Any, x: Tensor) -> None:
    fused = module.fuse_for_inference()
    expected = fused(x)
    with torch.no_grad():
        for value in (*module.parameters(), *module.buffers()):
            value.zero_()
    assert torch.equal(fused(x), expected)


@pytest.mark.parametrize(
    "way", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), lambda m: m.eval()], ids=["copy", "pickle", "eval"]
)
def test_a_copy_of_what_is_fused_computes_the_same(module: Any, x: Tensor, way: Any) -> None:
    fused = module.fuse_for_inference()
    assert torch.equal(way(fused)(x), fused(x))


def test_a_state_of_what_is_fused_loads_into_another(module: Any, x: Tensor) -> None:
    fused, other = module.fuse_for_inference(), module.apply(_reset).fuse_for_inference()
    assert not torch.allclose(other(x), fused(x))
    other.load_state_dict(fused.state_dict(), strict=True)
    assert torch.equal(other(x), fused(x))


def _reset(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d):
        module.reset_parameters()


def test_training_what_is_fused_is_refused(module: Any) -> None:
    fused = module.fuse_for_inference()
    assert not any(m.training for m in fused.modules())
    assert not any(p.requires_grad for p in fused.parameters())
    with pytest.raises(RuntimeError, match=r"Fused.* cannot be trained\. Train the module that fuse_for_inference"):
        nn.Sequential(fused).train()


def test_no_batch_norm_and_no_second_branch_is_left(module: Any, name: str) -> None:
    fused = module.fuse_for_inference()
    assert isinstance(fused, Fused)
    convolutions = [sum(isinstance(m, nn.Conv2d) for m in some.modules()) for some in (module, fused)]
    assert not any(isinstance(m, nn.BatchNorm2d) for m in fused.modules())
    blocks = {"shortcut": (2, 2), "resnet": (1 + 6 * 4 + 3 * 2, 1 + 6 * 2 + 3 * 2), "equal bottleneck": (6, 3)}
    if name in blocks:
        assert tuple(convolutions) == blocks[name]


def test_what_is_fused_compiles(module: Any, x: Tensor) -> None:
    fused = module.fuse_for_inference()
    torch._dynamo.reset()
    with torch.no_grad():
        compiled = torch.compile(fused, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(x), fused(x), rtol=1e-5, atol=1e-5)


def test_another_norm_is_refused() -> None:
    block = ShakeBlock(4, 4)
    block.branch2[2] = nn.GroupNorm(2, 4)
    with pytest.raises(TypeError, match=r"followed by GroupNorm\(.*only a batch norm with running statistics"):
        block.fuse_for_inference()


def test_a_batch_norm_without_statistics_is_refused() -> None:
    block = ShakeBlock(4, 4)
    block.branch1[5] = nn.BatchNorm2d(4, track_running_stats=False)
    with pytest.raises(TypeError, match="only a batch norm with running statistics"):
        block.fuse_for_inference()


@pytest.mark.parametrize("network", ["resnet", "resnext"])
def test_what_is_no_batch_of_images_is_refused(network: str) -> None:
    module: Any = MODULES[network][0]()
    with pytest.raises(ValueError, match=r"ShakeRes.*: the input has shape \(2, 1, 32, 32\); give images"):
        module.fuse_for_inference()(torch.zeros(2, 1, 32, 32))
