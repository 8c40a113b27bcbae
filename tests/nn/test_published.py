"""Held against the published networks: same state, same evaluation; needs GRADSPEC_PEERS to name their folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from gradspec import nn as ours
from gradspec_lab.peers.load import alone
from nn.networks import images

FOLDER = "archai.supergraph.models.shakeshake"


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the published networks by name."""
    site = Path(os.environ.get("GRADSPEC_PEERS", ""))
    if not (site / FOLDER.replace(".", "/")).is_dir():
        pytest.skip("GRADSPEC_PEERS names no folder with archai 1.0.0 in it")
    # It makes its noise on a GPU, whatever device its input is on.
    monkeypatch.setattr(torch.cuda, "FloatTensor", torch.FloatTensor)
    resnet, resnext = (alone(site, f"{FOLDER}.{name}") for name in ("shake_resnet", "shake_resnext"))
    found = {"ShakeResNet": resnet.ShakeResNet, "ShakeResNeXt": resnext.ShakeResNeXt}
    return found | {"ShakeBlock": resnet.ShakeBlock, "ShakeBottleNeck": resnext.ShakeBottleNeck}


networks = pytest.mark.parametrize(
    ("name", "arguments"),
    [("ShakeResNet", (14, 16, 10)), ("ShakeResNet", (8, 32, 10)), ("ShakeResNeXt", (20, 64, 2, 10))],
)


@networks
def test_a_trained_published_state_gives_the_same_evaluation(
    published: dict[str, Any], name: str, arguments: tuple[int, ...]
) -> None:
    torch.manual_seed(0)
    theirs = published[name](*arguments)
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.01)
    for seed in range(2):  # so that running statistics and batch norm's parameters are not what they start as
        torch.nn.functional.cross_entropy(theirs(images(4, 3, 32, 32, seed=seed)), torch.arange(4)).backward()
        optimizer.step()
    network = getattr(ours, name)(*arguments)
    network.load_state_dict(theirs.state_dict(), strict=True)
    x = images(4, 3, 32, 32, seed=7)
    torch.testing.assert_close(network.eval()(x), theirs.eval()(x), rtol=1e-5, atol=1e-5)


@networks
def test_keys_and_their_order_are_the_published_ones_but_for_unused_shortcuts(
    published: dict[str, Any], name: str, arguments: tuple[int, ...]
) -> None:
    network = getattr(ours, name)(*arguments)
    theirs = {key: value.shape for key, value in published[name](*arguments).state_dict().items()}
    mine = {key: value.shape for key, value in network.state_dict().items()}
    assert list(mine.items()) == [item for item in theirs.items() if item[0] in mine]
    assert all(".shortcut." in key for key in theirs.keys() - mine.keys())


def test_a_seed_gives_the_published_resnext(published: dict[str, Any]) -> None:
    torch.manual_seed(3)
    theirs = published["ShakeResNeXt"](11, 64, 1, 5).state_dict()
    torch.manual_seed(3)
    network = ours.ShakeResNeXt(11, 64, 1, 5)
    assert [key for key, value in network.state_dict().items() if not torch.equal(value, theirs[key])] == []


def test_the_published_head_makes_rows_of_its_own_out_of_a_large_image(published: dict[str, Any]) -> None:
    x = images(2, 3, 64, 64)
    assert published["ShakeResNet"](8, 4, 5).eval()(x).shape == (8, 5)
    assert ours.ShakeResNet(8, 4, 5).eval()(x).shape == (2, 5)


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_the_published_resnext_does_too_and_rounds_its_width_down(published: dict[str, Any]) -> None:
    theirs, one = published["ShakeResNeXt"], images(1, 3, 64, 64)
    assert theirs(11, 64, 1, 5).eval()(one).shape == (4, 5)

    def shapes(width: int) -> dict[str, torch.Size]:
        return {key: value.shape for key, value in theirs(11, width, 1, 5).state_dict().items()}

    assert shapes(96) == shapes(64)
    with pytest.raises(ZeroDivisionError):
        theirs(11, 48, 1, 5)


def test_the_published_block_of_equal_widths_carries_an_unused_shortcut(published: dict[str, Any]) -> None:
    theirs, block = published["ShakeBlock"](4, 4), ours.ShakeBlock(4, 4)
    theirs(images(2, 4, 8, 8)).sum().backward()
    assert {key for key, p in theirs.named_parameters() if p.grad is None} == {
        "shortcut.conv1.weight",
        "shortcut.conv2.weight",
        "shortcut.bn.weight",
        "shortcut.bn.bias",
    }
    assert block.shortcut is None
