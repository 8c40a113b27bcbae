"""The example runs, says what is wrong with wrong options, and compares what it says it compares."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from gradspec.nn import ShakeBlock

SCRIPT = "shake_digits.py"
SHORT = ("--epochs", 1, "--seeds", 1, "--width", 4, "--mode", "even-even", "--mode", "shake-shake")


@pytest.fixture(autouse=True)
def _own_random_numbers():
    with torch.random.fork_rng(devices=()):
        yield


@pytest.mark.slow
def test_the_same_options_give_the_same_numbers(run, tmp_path: Path) -> None:
    records = []
    for name in ("a.json", "b.json"):
        done = run(SCRIPT, *SHORT, "--out", tmp_path / "new" / name)
        assert done.returncode == 0, done.stderr
        records.append(json.loads((tmp_path / "new" / name).read_text(encoding="utf-8")))
    first, second = records
    assert first["figures"] == second["figures"]
    assert first["numbers"] == second["numbers"]
    even, shake = first["figures"]["test_loss"]["lines"]
    assert (even["label"], shake["label"]) == ("even-even", "shake-shake")
    assert even["runs"] != shake["runs"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--depth", 9), "depth is 9, which is not 6n + 2 with n >= 1; write 8 or 14"),
        (("--width", 9), "w_base is 9"),
        (("--epochs", 0), "Invalid value for '--epochs'"),
        (("--mode", "odd"), "'odd' is not one of"),
        (("--out", "/proc/no/such.json"), "/proc/no/such.json cannot be written"),
    ],
    ids=["depth", "odd width", "no epoch", "unknown mode", "record that cannot be written"],
)
def test_a_wrong_option_is_named_without_a_traceback(run, arguments: tuple[object, ...], words: str) -> None:
    done = run(SCRIPT, *arguments)
    assert done.returncode != 0
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_without_scikit_learn_it_says_what_to_install(run, tmp_path: Path) -> None:
    (tmp_path / "sklearn.py").write_text("raise ImportError\n", encoding="utf-8")
    done = run(SCRIPT, *SHORT, path=tmp_path)
    assert done.returncode == 1
    assert "python -m pip install scikit-learn" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_block_of_the_published_mode_is_the_published_block(load) -> None:
    block = ShakeBlock(4, 4)
    other = load("shake_digits").OtherMode(block, "shake", "shake")
    x = torch.randn(8, 4, 8, 8)
    torch.manual_seed(0)
    expected = block(x)
    expected_gradients = torch.autograd.grad(expected.square().sum(), block.parameters())
    torch.manual_seed(0)
    actual = other(x)
    gradients = torch.autograd.grad(actual.square().sum(), block.parameters())
    assert torch.equal(actual, expected)
    assert all(map(torch.equal, gradients, expected_gradients))


def test_a_block_of_an_even_mode_draws_nothing(load) -> None:
    other = load("shake_digits").OtherMode(ShakeBlock(4, 4), "even", "even").train()
    before = torch.get_rng_state()
    other(torch.randn(8, 4, 8, 8, generator=torch.Generator())).sum().backward()
    assert torch.equal(torch.get_rng_state(), before)


def test_all_modes_start_alike_and_agree_in_evaluation(load) -> None:
    example = load("shake_digits")
    x = torch.randn(4, 3, 8, 8)
    logits = []
    for mode in example.MODES:
        torch.manual_seed(3)
        logits.append(example.build(mode, 8, 4).eval()(x))
    assert all(torch.equal(found, logits[0]) for found in logits)


def test_no_image_is_in_both_sets_and_the_test_images_are_the_last(load) -> None:
    from sklearn import datasets

    digits = load("_digits").load_digits()
    pixels = torch.tensor(datasets.load_digits().images, dtype=torch.float32)
    both = torch.cat((digits.train_x, digits.test_x))[:, 0]
    assert (len(digits.train_y), len(digits.test_y)) == (1000, 797)
    torch.testing.assert_close(both, (pixels - pixels[:1000].mean()) / pixels[:1000].std())


def test_an_image_is_moved_by_a_pixel_at_most(load) -> None:
    image = torch.arange(16.0).reshape(1, 1, 4, 4)
    padded = torch.nn.functional.pad(image, (1, 1, 1, 1), mode="replicate")
    moves = [padded[:, :, i : i + 4, j : j + 4] for i in range(3) for j in range(3)]
    found = load("_digits").shifted(image.expand(200, 1, 4, 4), torch.Generator().manual_seed(0))
    seen = {next(i for i, move in enumerate(moves) if torch.equal(one[None], move)) for one in found}
    assert seen == set(range(9))
