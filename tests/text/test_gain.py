"""Better is what is shown on examples that no step has used; what is not shown keeps the old text."""

from __future__ import annotations

import json
import math
import random
from itertools import product

import pytest

from gradspec.text import Variable
from gradspec.text.optim import Gain, Score, TextualGradientDescent, examples_needed, optimize
from gradspec.text.optim._gain import paired_interval


def probabilities(count, better, worse):
    """Yield how many of paired scores of 0 or 1 got better and worse, with the probability."""
    for up, down in product(range(count + 1), repeat=2):
        if up + down <= count:
            ways = math.comb(count, up) * math.comb(count - up, down)
            yield up, down, ways * better**up * worse**down * (1 - better - worse) ** (count - up - down)


def interval_of(count, up, down):
    return paired_interval([1] * up + [-1] * down + [0] * (count - up - down))


@pytest.mark.parametrize("count", [5, 20, 50])
@pytest.mark.parametrize(
    "rates", [(0.05, 0.05), (0.1, 0.05), (0.3, 0.1), (0.25, 0.25), (0.5, 0.2), (0.05, 0.0)], ids=str
)
def test_the_interval_holds_the_difference_as_often_as_it_says(count, rates):
    better, worse = rates
    held = shown = 0.0
    for up, down, probability in probabilities(count, better, worse):
        low, high = interval_of(count, up, down)
        held += probability * (low <= better - worse <= high)
        shown += probability * (low > 0)
    # The score test is not exact: few examples have few outcomes.
    assert held > 0.925
    if better == worse:
        assert shown < 0.04


@pytest.mark.parametrize("changed", [0.05, 0.2, 0.5])
def test_as_many_examples_as_are_needed_show_five_points(changed):
    count, draw = examples_needed(changed), random.Random(0)
    better = (changed + 0.05) / 2
    shown = 0
    for _ in range(400):
        differences = [1 if (u := draw.random()) < better else -1 if u < changed else 0 for _ in range(count)]
        shown += paired_interval(differences)[0] > 0
    assert shown > 0.8 * 400 - 32  # four standard deviations of a chance of 80 %
    if changed > 0.05:  # where nothing gets worse, the formula is known to ask for more than it takes
        assert shown < 0.8 * 400 + 32


@pytest.mark.parametrize(("count", "up", "down"), [(44, 9, 1), (10, 0, 3), (160, 40, 20), (12, 5, 0)])
def test_at_its_ends_the_score_test_just_rejects(count, up, down):
    for end, side in zip(interval_of(count, up, down), (1, -1), strict=True):
        # The likeliest chance to get worse, at this difference, found without the formula.
        chances = [q for step in range(1, 200_000) if (q := step / 200_000) + end > 0 and 2 * q + end < 1]
        worse = max(
            chances,
            key=lambda q: up * math.log(q + end) + down * math.log(q) + (count - up - down) * math.log(1 - 2 * q - end),
        )
        z = (up - down - count * end) / math.sqrt(count * (2 * worse + end - end**2))
        assert side * z == pytest.approx(1.95996, abs=2e-3)


def test_eight_points_of_noise_at_150_examples_are_not_shown():
    """Twelve more are right by chance, of 30 that changed: 21 one way and 9 the other is 8 points."""
    gain = Gain.of([0] * 21 + [1] * 9 + [1] * 120, [1] * 21 + [0] * 9 + [1] * 120)
    assert gain.mean == pytest.approx(0.08)
    assert gain.shown
    noisy = Gain.of([0] * 36 + [1] * 24 + [1] * 90, [1] * 36 + [0] * 24 + [1] * 90)
    assert noisy.mean == pytest.approx(0.08)
    assert not noisy.shown
    assert noisy.needed > 1000


def test_copies_of_an_example_are_no_repeats():
    before, after = [0, 0, 0, 0], [1, 1, 1, 1]
    examples = [(f"q{i}", "a") for i in range(4)]
    once, copied = Gain.of(before, after, examples), Gain.of(before * 9, after * 9, examples * 9)
    assert copied == once
    assert once.examples == 4
    assert Gain.of(before * 9, after * 9).low > once.low


def test_student_for_other_scores_and_none_where_they_do_not_vary():
    found = Gain.of([0.0, 0.0, 0.0], [0.1, 0.2, 0.3])
    assert (found.low, found.high) == pytest.approx(
        (0.2 - 4.3027 * 0.1 / 3**0.5, 0.2 + 4.3027 * 0.1 / 3**0.5), abs=1e-4
    )
    alike = Gain.of([0.5, 0.5], [0.75, 0.75])
    assert (alike.low, alike.needed, alike.shown) == (None, None, False)
    assert "no interval" in str(alike)


def test_differences_that_differ_by_rounding_say_nothing_of_how_much_they_vary():
    assert Gain.of([0.1, 0.2], [0.2, 0.3]) == Gain.of([0.1, 0.1], [0.2, 0.2])
    assert Score.of([0.1 + 0.2, 0.3]).low is None


@pytest.mark.parametrize(
    "call",
    [
        lambda: Gain.of([], []),
        lambda: Gain.of([0.1], [0.2, 0.3]),
        lambda: Gain.of([math.nan], [1]),
        lambda: Score.of([]),
        lambda: examples_needed(0.01),
        lambda: examples_needed(2),
        lambda: examples_needed(0.05, 0),
    ],
)
def test_numbers_that_make_no_sense_are_refused(call):
    with pytest.raises(ValueError, match="got"):
        call()


def optimized(right, *, tests, **settings):
    """Optimize a prompt whose new text answers the tests in `right`, and the old one none."""
    prompt = Variable("old", role="prompt", requires_grad=True)
    texts = iter(["new", "newer", "newest"])
    writer = TextualGradientDescent([prompt], lambda messages: f"<new>{next(texts)}</new>")

    def metric(prediction, target):
        text, question = prediction.split()
        return float(text != "old" and (question in right or not question.startswith("t"))), "wrong"

    data = {
        "training": [("a", ""), ("b", "")],
        "validation": [("c", ""), ("d", "")],
        "test": [(f"t{i}", "") for i in range(tests)],
    }
    found = optimize(lambda word: prompt + " " + word, data, metric, writer, steps=1, **settings)
    return found, prompt.data


@pytest.mark.parametrize(("right", "shown"), [(["t0"], False), ([f"t{i}" for i in range(8)], True)])
def test_what_is_not_shown_to_be_better_keeps_the_old_text(right, shown):
    found, text = optimized(right, tests=10)
    assert found.steps[0].accepted
    assert (found.best, found.after, text) == (("new",), ("new" if shown else "old",), "new" if shown else "old")
    assert found.gain.shown == json.loads(found.to_json())["shown"] == shown
    assert ("not shown to be better; the first texts are kept" in str(found)) == (not shown)
    assert ("a difference of 5 points would need" in str(found)) == (not shown)
    assert "<ins>+ new</ins>" in found.page()  # what was proposed, kept or not


def test_the_best_on_validation_is_kept_where_that_is_asked_or_nothing_tests():
    assert optimized(["t0"], tests=10, only_shown=False)[1] == "new"
    found, text = optimized([], tests=0)
    assert (found.gain, text) == (None, "new")


def test_a_run_that_goes_on_tests_its_new_best_text_and_the_old_scores_once(tmp_path):
    prompt = Variable("n=0", role="prompt", requires_grad=True)
    texts = iter(["n=1", "n=2"])
    writer = TextualGradientDescent([prompt], lambda messages: f"<new>{next(texts)}</new>")
    tested = []

    def metric(prediction, target):
        if target == "test":
            tested.append(prediction)
        return float(prediction[2]) / 10 + int(prediction[-1]) / 100, "higher"

    data = {"training": [("1", "")], "validation": [("1", ""), ("2", "")], "test": [("1", "test"), ("2", "test")]}

    def run(steps):
        return optimize(
            lambda word: prompt + " " + word, data, metric, writer, steps=steps, checkpoint=tmp_path / "run.json"
        )

    first = run(1)
    assert (first.best, first.after, prompt.data) == (("n=1",), ("n=0",), "n=0")
    assert tested == ["n=1 1", "n=1 2", "n=0 1", "n=0 2"]
    assert run(1) == first
    assert len(tested) == 4
    second = run(2)
    assert second.best == ("n=2",)
    assert tested[4:] == ["n=2 1", "n=2 2"]


def test_the_plan_says_how_many_examples_five_points_take():
    prompt = Variable("Answer.", role="prompt", requires_grad=True)
    writer = TextualGradientDescent([prompt], lambda messages: "never asked")
    data = {"training": [("a", "")], "validation": [("b", "")], "test": [("c", ""), ("d", ""), ("c", "")]}
    plan = optimize(lambda word: prompt + word, data, lambda p, t: 0.0, writer, steps=1, dry_run=True)
    assert (plan.needed, plan.tests) == ((155, 1568), 2)
    assert "takes 155 to 1568 different examples that test; there are 2" in str(plan)
