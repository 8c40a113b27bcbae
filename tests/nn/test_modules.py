"""What every module of a Shake-Shake network does, as a matrix of modules times properties."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING

import pytest
import torch

from gradspec.nn import ShakeBlock, ShakeBottleNeck, ShakeResNet, ShakeResNeXt, Shortcut
from nn.networks import MODULES, PARAMETERS, images

if TYPE_CHECKING:
    from torch import Tensor, nn

SHAPES = {
    "shortcut": (3, 6, 4, 4),
    "shortcut without stride": (3, 6, 8, 8),
    "equal block": (3, 4, 8, 8),
    "widening block": (3, 6, 4, 4),
    "equal bottleneck": (3, 4, 8, 8),
    "widening bottleneck": (3, 8, 4, 4),
    "resnet": (3, 5),
    "resnext": (3, 5),
}


@pytest.fixture(params=PARAMETERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def module(name: str) -> nn.Module:
    torch.manual_seed(0)
    return MODULES[name][0]()


@pytest.fixture
def x(name: str) -> Tensor:
    return images(*MODULES[name][1])


def test_shape(module: nn.Module, x: Tensor, name: str) -> None:
    assert module(x).shape == SHAPES[name]


def test_dtype_is_that_of_the_parameters(module: nn.Module, x: Tensor) -> None:
    assert module.double()(x.double()).dtype == torch.float64


def test_evaluation_is_deterministic(module: nn.Module, x: Tensor) -> None:
    module.eval()
    before = torch.get_rng_state()
    assert torch.equal(module(x), module(x))
    assert torch.equal(torch.get_rng_state(), before)


def test_training_shakes(module: nn.Module, x: Tensor) -> None:
    if isinstance(module, Shortcut):
        pytest.skip("a shortcut has no branches")
    assert not torch.allclose(module(x), module(x))


def test_gradient_flows_to_every_parameter(module: nn.Module, x: Tensor) -> None:
    (module(x) ** 2).sum().backward()
    without = [key for key, p in module.named_parameters() if p.grad is None or not p.grad.abs().max() > 0]
    assert without == []


def test_the_input_is_left_alone(module: nn.Module, x: Tensor) -> None:
    given = x.clone()
    module(x)
    assert torch.equal(x, given)


def test_deepcopy_computes_the_same_and_shares_nothing(module: nn.Module, x: Tensor) -> None:
    twin = copy.deepcopy(module.eval())
    expected = module(x)
    assert torch.equal(twin(x), expected)
    with torch.no_grad():
        for p in module.parameters():
            p.zero_()
    assert torch.equal(twin(x), expected)


def test_pickle_computes_the_same(module: nn.Module, x: Tensor) -> None:
    module.eval()
    assert torch.equal(pickle.loads(pickle.dumps(module))(x), module(x))


@pytest.mark.parametrize(
    ("build", "error", "says"),
    [
        (lambda: Shortcut(4, 7, 1), ValueError, "out_ch is 7, and two paths share it evenly; write 8"),
        (lambda: Shortcut(0, 8, 1), ValueError, "in_ch is 0; write 1 or more"),
        (lambda: Shortcut(4, 8, 0), ValueError, "stride is 0; write 1 or more"),
        (lambda: ShakeBlock(4, 4, 2), ValueError, "stride is 2 with in_ch = out_ch = 4; .* write stride=1, or"),
        (lambda: ShakeBlock(4, 7), ValueError, "out_ch is 7"),
        (lambda: ShakeBlock(4, -8), ValueError, "out_ch is -8; write 1 or more"),
        (lambda: ShakeBottleNeck(4, 6, 4, 3, 2), ValueError, "stride is 2 with in_ch = out_ch = 4"),
        (lambda: ShakeBottleNeck(4, 5, 8, 3), ValueError, "mid_ch is 5, which 3 groups .* write 6"),
        (lambda: ShakeBottleNeck(4, 6, 8, 0), ValueError, "cardinary is 0; write 1 or more"),
        (lambda: ShakeBottleNeck(4, 0, 8, 3), ValueError, "mid_ch is 0; write 1 or more"),
        (lambda: ShakeResNet(27, 32, 10), ValueError, r"depth is 27, which is not 6n \+ 2 .* write 26 or 32"),
        (lambda: ShakeResNet(2, 32, 10), ValueError, r"depth is 2, which is not 6n \+ 2 .* write 8 or 14"),
        (lambda: ShakeResNet(1, 32, 10), ValueError, r"depth is 1, .* write 8 or 14"),
        (lambda: ShakeResNet(8, 33, 10), ValueError, "w_base is 33, .* write 34"),
        (lambda: ShakeResNet(8, 0, 10), ValueError, "w_base is 0; write 1 or more"),
        (lambda: ShakeResNet(8, 32, 0), ValueError, "label is 0; write 1 or more"),
        (lambda: ShakeResNet(8.0, 32, 10), TypeError, "depth is 8.0; write an integer"),
        (lambda: ShakeResNet(8, 32, True), TypeError, "label is True; write an integer"),
        (lambda: ShakeResNeXt(26, 64, 4, 10), ValueError, r"depth is 26, which is not 9n \+ 2 .* write 20 or 29"),
        (lambda: ShakeResNeXt(2, 64, 4, 10), ValueError, r"depth is 2, .* write 11 or 20"),
        (lambda: ShakeResNeXt(11, 48, 4, 10), ValueError, "w_base is 48, .* multiple of 64; write 64 or 128"),
        (lambda: ShakeResNeXt(11, 96, 4, 10), ValueError, "w_base is 96, .* multiple of 64; write 64 or 128"),
        (lambda: ShakeResNeXt(11, 64, 0, 10), ValueError, "cardinary is 0; write 1 or more"),
    ],
)
def test_what_makes_no_network_is_refused(build: object, error: type[Exception], says: str) -> None:
    assert callable(build)
    with pytest.raises(error, match=says):
        build()


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ((3, 32, 32), r"shape \(3, 32, 32\); give images of shape \(B, 3, H, W\)"),
        ((2, 1, 32, 32), r"shape \(2, 1, 32, 32\); give images"),
        ((2, 3, 3, 32), "images are 3 x 32, .* give at least 4 x 4"),
        ((2, 3, 32, 2), "images are 32 x 2, .* give at least 4 x 4"),
    ],
)
@pytest.mark.parametrize("network", ["resnet", "resnext"])
def test_what_is_no_batch_of_images_is_refused(network: str, shape: tuple[int, ...], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        MODULES[network][0]()(torch.zeros(shape))


@pytest.mark.parametrize("network", ["resnet", pytest.param("resnext", marks=pytest.mark.slow)])
@pytest.mark.parametrize("side", [4, 7, 32, 64])
def test_each_image_gets_one_row_whatever_its_size(network: str, side: int) -> None:
    model = MODULES[network][0]().eval()
    batch = images(2, 3, side, side + 1)
    logits = model(batch)
    assert logits.shape == (2, 5)
    torch.testing.assert_close(model(batch[:1]), logits[:1], rtol=1e-4, atol=1e-5)


def test_a_block_adds_the_mean_of_its_branches_to_its_input_in_evaluation() -> None:
    block = ShakeBlock(4, 4).eval()
    x = images(2, 4, 8, 8)
    h = x.relu()
    torch.testing.assert_close(block(x), x + (block.branch1(h) + block.branch2(h)) / 2)


def test_the_second_half_of_a_shortcut_sees_the_pixel_one_below_and_one_right() -> None:
    shortcut = Shortcut(1, 2, 2).eval()
    with torch.no_grad():
        shortcut.conv1.weight.fill_(1)
        shortcut.conv2.weight.fill_(1)
    x = torch.arange(9.0).reshape(1, 1, 3, 3)
    expected = torch.tensor([[[[0.0, 2], [6, 8]], [[4, 0], [0, 0]]]])
    torch.testing.assert_close(shortcut(x), expected, rtol=1e-4, atol=0)


@pytest.mark.parametrize("network", ["resnet", "resnext"])
def test_initial_parameters(network: str) -> None:
    torch.manual_seed(0)
    model = MODULES[network][0]()
    for key, module in model.named_modules():
        if isinstance(module, torch.nn.Conv2d) and module.weight.numel() > 2000:
            fan_out = module.out_channels * module.kernel_size[0] ** 2
            assert module.weight.std().item() == pytest.approx((2 / fan_out) ** 0.5, rel=0.08), key
    assert isinstance(model.fc_out, torch.nn.Linear)
    assert torch.equal(model.fc_out.bias, torch.zeros(5))
    assert model.c_in.bias is not None
