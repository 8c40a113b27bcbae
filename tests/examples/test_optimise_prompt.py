"""The prompt gets better by feedback alone, the same way every time, and the page says what the record says."""

from __future__ import annotations

import json
from collections import Counter
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from gradspec.text import Variable
from text.lm.server import Server

SCRIPT = "optimise_prompt.py"
SHORT = ("--steps", 2, "--seeds", 1)
RECORD = Path(__file__).parents[2] / "docs" / "records" / "examples" / "optimise_prompt.json"


@pytest.fixture
def example(load):
    return load("optimise_prompt")


@pytest.fixture
def desk(load):
    return load("_help_desk")


@pytest.mark.slow
def test_the_same_options_give_the_same_record(run, tmp_path: Path) -> None:
    records = []
    for name in ("a.json", "b.json"):
        done = run(SCRIPT, *SHORT, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
        records.append(json.loads((tmp_path / name).read_text(encoding="utf-8")))
    assert records[0]["figures"] == records[1]["figures"]
    assert records[0]["numbers"] == records[1]["numbers"]


def test_the_committed_record_is_what_the_script_measures_today(example) -> None:
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    train, test = (line["runs"] for line in record["figures"]["right"]["lines"])
    from _help_desk import MODEL

    for seed in range(5):
        found = list(example.optimise(seed, **record["settings"], model=MODEL))
        assert [round(scores[0], 6) for scores in found] == train[seed]
        assert [round(scores[1], 6) for scores in found] == test[seed]


def test_the_record_asks_for_no_package_that_the_script_does_not_use(example, monkeypatch, tmp_path: Path) -> None:
    import _record

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(_record, "version", missing)
    example.save([[(0.1, 0.2, "a"), (0.3, 0.4, "b")]], {"steps": 1, "hints": 1}, tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["numbers"]


def test_what_the_page_says_of_the_record_is_so() -> None:
    lines = json.loads(RECORD.read_text(encoding="utf-8"))["figures"]["right"]["lines"]
    train, test = ([sum(values) / 5 for values in zip(*line["runs"], strict=True)] for line in lines)
    middle = len(test) // 2
    assert test[0] == train[0] == 0.25  # one department in four
    assert test[middle] - test[0] > 2 * (test[-1] - test[middle]) > 0  # most of the gain in the first half
    assert train[-1] - train[middle] > 2 * (test[-1] - test[middle])  # the others follow less and less
    assert train[-1] == 1.0 > test[-1]


def test_no_message_is_in_both_parts_and_every_label_is_there_as_often(desk) -> None:
    for seed in range(5):
        train, test = desk.load_split(seed)
        assert len({e.message for e in train + test}) == 80
        assert Counter(e.label for e in train) == dict.fromkeys(desk.LABELS, 12)
        assert Counter(e.label for e in test) == dict.fromkeys(desk.LABELS, 8)
    assert desk.load_split(0) != desk.load_split(1)


def test_the_test_messages_give_no_feedback(example, desk) -> None:
    asked = []

    def listening(messages, **options):
        asked.append(messages[-1].content)
        return desk.MODEL(messages, **options)

    _, test = desk.load_split(0)
    list(example.optimise(0, steps=3, hints=8, model=listening))
    feedback = [text for text in asked if "</conversation>" in text]
    assert feedback
    assert not [e.message for e in test if any(f"user: {e.message}\n" in text for text in feedback)]


def test_only_wrong_answers_give_feedback(example, desk) -> None:
    asked = []

    def listening(messages, **options):
        asked.append(messages[-1].content)
        return desk.MODEL(messages, **options)

    examples = [
        desk.Example(message="A wrong invoice.", label="billing"),
        desk.Example(message="My newsletter.", label="account"),
    ]
    prompt = Variable(example.START, requires_grad=True)
    optimizer = example.make_optimizer(prompt, listening, hints=1)
    example.step(optimizer, prompt, examples, listening)
    feedback = [text for text in asked if "</conversation>" in text]
    assert len(feedback) == 1
    assert "user: A wrong invoice.\n</conversation>" in feedback[0]
    before = prompt.data
    example.step(optimizer, prompt, examples, listening)  # all are right now
    assert prompt.grad is None
    assert prompt.data == before
    assert before.endswith("- invoice: billing")


def test_a_hint_that_feedback_contradicts_is_not_taken(example, desk) -> None:
    examples = [
        desk.Example(message="A broken parcel, returned.", label="returns"),
        desk.Example(message="A late parcel.", label="delivery"),
    ]
    prompt = Variable(example.START, requires_grad=True)
    example.step(example.make_optimizer(prompt, desk.MODEL, hints=9), prompt, examples, desk.MODEL)
    assert "parcel" not in prompt.data
    assert "- late: delivery" in prompt.data


@pytest.mark.slow
def test_a_server_may_take_the_place_of_the_rules(run, load) -> None:
    desk = load("_help_desk")
    with Server(reply=lambda body: desk.MODEL(body["messages"]).text) as server:
        served = run(SCRIPT, "--steps", 1, "--seeds", 1, "--show", "--model", "m", "--base-url", server.url)
        peak = server.peak
    assert served.returncode == 0, served.stderr
    assert served.stdout == run(SCRIPT, "--steps", 1, "--seeds", 1, "--show").stdout
    assert peak > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--base-url", "http://localhost:1/v1"), "say with --model which of its models to ask"),
        (("--steps", 0), "Invalid value for '--steps'"),
        (("--out", "/proc/no/such.json"), "/proc/no/such.json cannot be written"),
    ],
)
def test_a_wrong_option_is_named_without_a_traceback(run, arguments: tuple[object, ...], words: str) -> None:
    done = run(SCRIPT, *arguments)
    assert done.returncode != 0
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_it_runs_without_torch(run, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError\n", encoding="utf-8")
    done = run(SCRIPT, *SHORT, path=tmp_path)
    assert done.returncode == 0, done.stderr
