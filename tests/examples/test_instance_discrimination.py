"""The example runs, says what is wrong with wrong options, and changes images as it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from distributed.torchrun import torchrun

pytestmark = pytest.mark.slow

SCRIPT = "instance_discrimination.py"
SHORT = ("--epochs", 1, "--seeds", 1, "--features", 8)


def test_the_same_options_give_the_same_numbers(run, tmp_path: Path) -> None:
    records = []
    for name in ("a.json", "b.json"):
        done = run(SCRIPT, *SHORT, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
        records.append(json.loads((tmp_path / name).read_text(encoding="utf-8")))
    assert records[0]["figures"] == records[1]["figures"]
    assert records[0]["numbers"] == records[1]["numbers"]
    embedding, raw = records[0]["figures"]["accuracy_k200"]["lines"]
    assert len(embedding["runs"][0]) == 2, "before the first epoch, and after it"
    assert embedding["runs"][0][0] != embedding["runs"][0][1]
    assert raw["runs"][0] == [records[0]["numbers"]["k200"]["raw"]] * 2


def test_two_ranks_that_torchrun_starts_write_one_record(tmp_path: Path) -> None:
    said = torchrun(2, f"docs/examples/{SCRIPT}", *SHORT, "--out", tmp_path / "two.json")
    record = json.loads((tmp_path / "two.json").read_text(encoding="utf-8"))
    assert len(said.splitlines()) == 4, "one rank prints"
    # The loss of the first epoch is near that of one process; batch normalisation sees half of each batch.
    assert record["figures"]["loss"]["lines"][0]["runs"] == [[pytest.approx(15.85, abs=0.3)]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--temperature", 0), "T is 0.0; write a temperature above 0"),
        (("--momentum", 2), "momentum is 2.0"),
        (("--features", 0), "Invalid value for '--features'"),
        (("--out", "/proc/no/such.json"), "/proc/no/such.json cannot be written"),
    ],
    ids=["temperature", "momentum", "no feature", "record that cannot be written"],
)
def test_a_wrong_option_is_named_without_a_traceback(run, arguments: tuple[object, ...], words: str) -> None:
    done = run(SCRIPT, *arguments)
    assert done.returncode != 0
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_the_vote_on_raw_pixels_is_that_of_the_cosine_and_no_test_label_is_seen(load) -> None:
    example, digits = load("instance_discrimination"), load("_digits").load_digits()
    near = torch.nn.functional.cosine_similarity(
        digits.test_x[:, None, 0].flatten(2), digits.train_x[None, :, 0].flatten(2), dim=2
    )
    weight, index = near.topk(5, dim=1)
    votes = torch.zeros(797, 10).scatter_add_(1, digits.train_y[index], (weight / example.TAU).exp())
    expected = (votes.argmax(1) == digits.test_y).float().mean().item()
    assert example.accuracy(example.pixels, digits)[5] == pytest.approx(expected, abs=2 / 797)


def test_an_image_is_changed_a_little_and_each_in_its_own_way(load) -> None:
    example = load("instance_discrimination")
    image = torch.zeros(1, 1, 8, 8)
    image[..., 3:5, 3:5] = 1.0
    found = example.turned(image.expand(100, 1, 8, 8), torch.Generator().manual_seed(0))
    rows = torch.arange(8.0)
    mass = found.sum(dim=(1, 2, 3))
    centre = torch.stack(((found.sum(3) * rows).sum((1, 2)) / mass, (found.sum(2) * rows).sum((1, 2)) / mass))
    assert (centre - 3.5).abs().max() < 1.5, "one pixel, and what turning moves"
    assert len({tuple(one.flatten().tolist()) for one in found}) == 100
    assert 0.6 < (mass / 4).min() < (mass / 4).max() < 1.6


def test_an_embedding_has_norm_1(load) -> None:
    encoder = load("instance_discrimination").Encoder(16).eval()
    torch.testing.assert_close(encoder(torch.randn(4, 3, 8, 8)).norm(dim=1), torch.ones(4))
