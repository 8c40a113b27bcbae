"""A published state loads, unused shortcuts included; which keys ours has, `published_api.toml` says."""

from __future__ import annotations

import pytest
import torch

from gradspec.nn import ShakeBlock, ShakeBottleNeck, ShakeResNet
from nn.networks import images, with_unused_shortcuts

NORM = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]


@pytest.mark.parametrize("build", [lambda: ShakeResNet(14, 16, 5), lambda: ShakeBlock(3, 3)], ids=["network", "block"])
def test_a_state_with_unused_shortcuts_loads_strictly(build: type[ShakeResNet]) -> None:
    torch.manual_seed(0)
    published, ours, x = build().eval(), build().eval(), images(2, 3, 16, 16)
    if isinstance(published, ShakeBlock):
        state = dict(published.state_dict()) | {
            f"shortcut.{key}": torch.zeros(1)
            for key in ("conv1.weight", "conv2.weight", *(f"bn.{name}" for name in NORM))
        }
    else:
        state = with_unused_shortcuts(published)
    given = list(state)
    assert len(given) > len(published.state_dict())
    assert not torch.equal(ours(x), published(x))
    ours.load_state_dict(state, strict=True)
    assert torch.equal(ours(x), published(x))
    assert list(state) == given  # the caller's dictionary is left as it was
    assert list(ours.state_dict()) == list(published.state_dict())


@pytest.mark.parametrize(
    "key",
    ["layer1.1.shortcut.conv3.weight", "layer1.1.shortcut.bn.extra", "layer1.1.branch3.1.weight", "shortcut.bn.weight"],
)
def test_an_unknown_key_is_still_refused(key: str) -> None:
    network = ShakeResNet(14, 4, 5)
    state = with_unused_shortcuts(network) | {key: torch.zeros(1)}
    with pytest.raises(RuntimeError, match=f'Unexpected key.*"{key}"'):
        network.load_state_dict(state, strict=True)


def test_a_missing_shortcut_is_still_missed() -> None:
    network = ShakeResNet(14, 4, 5)
    state = network.state_dict()
    del state["layer2.0.shortcut.conv2.weight"]
    with pytest.raises(RuntimeError, match=r'Missing key.*"layer2\.0\.shortcut\.conv2\.weight"'):
        network.load_state_dict(state, strict=True)


def test_a_bottleneck_of_equal_widths_has_no_unused_keys_to_drop() -> None:
    block = ShakeBottleNeck(4, 6, 4, 3)
    state = block.state_dict() | {"shortcut.bn.weight": torch.zeros(4)}
    with pytest.raises(RuntimeError, match=r'Unexpected key.*"shortcut\.bn\.weight"'):
        block.load_state_dict(state, strict=True)
