"""The figures of the function pages: their records are whole, and say what the functions do today."""

from __future__ import annotations

import importlib
import math
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from gradspec import FunctionSpec
from gradspec._record import read_experiment
from gradspec.functions import FUNCTIONS, GRAD_FACTOR, GradFactor
from gradspec_lab.sphinx.drawing._map_record import Map, map_of
from gradspec_lab.sphinx.drawing._plot_record import figure_of

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
RECORDS = DOCS / "records" / "figures"
DIRECTIVE = re.compile(
    r"^```\{gradspec-(curves|map)\} \.\./records/(figures|benchmarks)/(\w+)\.json (\w+)$", re.MULTILINE
)

#: A function may do without figures.
FIGURED = [spec for spec in FUNCTIONS if (RECORDS / f"{spec.name}.json").exists()]
specs = pytest.mark.parametrize("spec", FIGURED, ids=lambda spec: spec.name)


@pytest.fixture
def script() -> ModuleType:
    return importlib.import_module("gradspec_lab.figures.figure_record")


@pytest.fixture
def remainder() -> ModuleType:
    return importlib.import_module("gradspec_lab.figures.taylor")


def read(spec: FunctionSpec) -> dict[str, Any]:
    return read_experiment(RECORDS / f"{spec.name}.json")


def lines(record: dict[str, Any], name: str) -> dict[str, list[tuple[float, float]]]:
    """Return the points of each line of a figure that has one run a line."""
    figure = figure_of(record, name)
    return {line.label: list(zip(line.x, line.mean, strict=True)) for line in figure.lines}


def test_there_is_a_record_for_each_function_that_has_figures_and_no_other(script: ModuleType) -> None:
    assert {path.stem for path in RECORDS.glob("*.json")} == {spec.name for spec in FIGURED} == set(script.CURVES)


@specs
def test_a_record_is_sealed_and_says_how_to_make_it_again(spec: FunctionSpec, script: ModuleType) -> None:
    record = read(spec)
    assert record["provenance"]["command"] == script.COMMAND
    assert not record["provenance"]["commit"].endswith("+"), "made of a source that was not committed"


@specs
def test_what_is_measured_now_is_what_the_record_holds(spec: FunctionSpec, script: ModuleType) -> None:
    record, now = read(spec), script.measured(spec)
    assert now.keys() == record.keys() - {"schema", "kind", "provenance", "sources", "checksum"}
    assert now["figures"].keys() == record["figures"].keys()
    for name in record["figures"]:
        then, today = lines(record, name), lines(now, name)
        assert then.keys() == today.keys()
        for label in then:
            assert min(len(then[label]), len(set(then[label]))) >= 6
            for (x, y), expected in zip(then[label], today[label], strict=True):
                # Another machine may round the last digits of a remainder, which is a difference of like numbers.
                assert (x, y) == pytest.approx(expected, rel=1e-3, abs=1e-12)
    assert now["maps"].keys() == record["maps"].keys()
    for name in record["maps"]:
        before, after = map_of(record, name), map_of(now, name)
        assert (before.columns, before.rows) == (after.columns, after.rows)
        for row, expected_row in zip(before.values, after.values, strict=True):
            assert row == pytest.approx(expected_row, rel=1e-3, abs=1e-12)


@specs
def test_the_page_shows_every_figure_in_the_section_of_that_name(spec: FunctionSpec) -> None:
    page = (DOCS / "functions" / f"{spec.name}.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## .+$", page, re.MULTILINE)
    assert headings[:2] == ["## In pictures", "## When to reach for it"]
    section = page.partition("## In pictures")[2].partition("\n## ")[0]
    shown = DIRECTIVE.findall(section)
    for kind, form in (("figures", "curves"), ("maps", "map")):
        expected = [(form, "figures", spec.name, name) for name in read(spec)[kind]]
        assert [found for found in shown if found[0] == form] == expected


@specs
def test_the_page_shows_what_time_and_memory_the_function_takes(spec: FunctionSpec) -> None:
    page = (DOCS / "functions" / f"{spec.name}.md").read_text(encoding="utf-8")
    drawn = [(stem, name) for form, folder, stem, name in DIRECTIVE.findall(page) if folder == "benchmarks"]
    assert sorted(name.rpartition("_")[2] for _, name in drawn) == ["memory", "time"]
    for stem, name in drawn:
        figure_of(read_experiment(DOCS / "records" / "benchmarks" / f"{stem}.json"), name)


@pytest.mark.parametrize(("name", "argument"), [("grad_factor", "f"), ("grad_multiply", "scale")])
def test_the_gradients_of_scaling_are_the_derivatives_of_the_surrogate(name: str, argument: str) -> None:
    (spec,) = (spec for spec in FUNCTIONS if spec.name == name)
    shown = lines(read(spec), "gradient")
    assert all(x == y for x, y in shown.pop("output"))
    assert len(shown) == 3
    for label, points in shown.items():
        factor = float(label.removeprefix(f"gradient, {argument} = "))
        x = torch.tensor([x for x, _ in points], requires_grad=True)
        (expected,) = torch.autograd.grad(spec.surrogate(x, factor).sum(), x)
        assert [y for _, y in points] == pytest.approx(expected.tolist())


def test_the_shares_of_shaking_are_those_of_the_formula() -> None:
    (spec,) = (spec for spec in FUNCTIONS if spec.name == "shake_shake")
    shown = lines(read(spec), "alpha")
    assert shown["output"] == [(a, pytest.approx(2 * a - (1 - a))) for a, _ in shown["output"]]
    assert {y for _, y in shown["gradient of x1"]} == {0.25}
    assert {y for _, y in shown["gradient of x2"]} == {0.75}
    drawn = lines(read(spec), "draws")
    alpha, beta, rest = ([y for _, y in drawn[label]] for label in drawn)
    assert all(a != b for a, b in zip(alpha, beta, strict=True))
    assert all(0 <= share < 1 for share in alpha + beta)
    assert set(rest) == {0.5}


def test_the_logits_and_the_moved_rows_are_those_of_the_formulas() -> None:
    (spec,) = (spec for spec in FUNCTIONS if spec.name == "linear_average_op")
    shown = lines(read(spec), "logit")
    for label, temperature in (("T = 1", 1.0), ("T = 0.5", 0.5)):
        for (turn, o), (_, slope) in zip(shown[f"logit, {label}"], shown[f"slope a radian, {label}"], strict=True):
            at = math.radians(turn)
            assert (o, slope) == pytest.approx((math.cos(at) / temperature, -math.sin(at) / temperature), abs=1e-5)
    for label, points in lines(read(spec), "move").items():
        at = math.radians(float(label.removeprefix("embedding at ").removesuffix("°")))
        for m, moved in points:
            expected = math.atan2((1 - m) * math.sin(at), m + (1 - m) * math.cos(at))
            assert moved == pytest.approx(math.degrees(expected), rel=1e-5)


def test_the_loss_and_its_gradient_are_those_of_eight_logits() -> None:
    (spec,) = (spec for spec in FUNCTIONS if spec.name == "instance_discrimination_loss")
    losses, gradients = lines(read(spec), "loss"), lines(read(spec), "gradient")
    assert len(losses) == 3
    for label in losses:
        t = float(label.removeprefix("temperature "))
        for (s, loss), (_, gradient) in zip(losses[label], gradients[label], strict=True):
            p = math.exp(s / t) / (math.exp(s / t) + 7)
            assert (loss, gradient) == pytest.approx((-math.log(p), -(1 - p) / t), rel=1e-5)


def points(shown: Map) -> list[tuple[float, float, float]]:
    return [(x, y, shown.at(x, y)) for y in shown.rows for x in shown.columns]


def test_the_angle_is_that_between_the_shares() -> None:
    (spec,) = (spec for spec in FUNCTIONS if spec.name == "shake_shake")
    for a, b, angle in points(map_of(read(spec), "angle")):
        assert angle == pytest.approx(
            abs(math.degrees(math.atan2(1 - a, a) - math.atan2(1 - b, b))), rel=1e-4, abs=1e-9
        )


def test_the_push_is_the_share_of_the_other_row_over_the_temperature() -> None:
    (spec,) = (spec for spec in FUNCTIONS if spec.name == "instance_discrimination_loss")
    for own, other, push in points(map_of(read(spec), "push")):
        p = math.exp(other / 0.2) / (math.exp(own / 0.2) + math.exp(other / 0.2) + 6)
        assert push == pytest.approx(p / 0.2, rel=1e-4, abs=1e-9)


@specs
def test_the_slope_of_forward_is_2_exactly_where_gradcheck_accepts(spec: FunctionSpec, remainder: ModuleType) -> None:
    args = remainder.arguments(spec.name)
    for name in spec.wrt:
        args[spec.parameters.index(name)].requires_grad_()
    # A bank moves with the backward pass: each call gets its own, and a second pass over its graph rounds otherwise.
    accepted = torch.autograd.gradcheck(
        lambda *given: spec.function(*remainder.copied(given)), args, raise_exception=False, nondet_tol=1e-12
    )
    slopes = read(spec)["numbers"]["slopes"]
    assert round(slopes["forward"], 2) == (2.0 if accepted else 1.0)
    assert accepted == (spec.name in remainder.HONEST)
    assert [round(slope, 2) for label, slope in slopes.items() if label != "forward"] == [1.0 if accepted else 2.0]


def test_a_gradient_that_is_not_declared_gives_another_slope(remainder: ModuleType) -> None:
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, f: float) -> torch.Tensor:
            return x.view_as(x)

        @staticmethod
        def backward(ctx: Any, v: torch.Tensor) -> tuple[torch.Tensor, None]:
            return 0.11 * v, None

    _, right = remainder.taylor(GRAD_FACTOR)
    _, wrong = remainder.taylor(GRAD_FACTOR.for_(Wrong.apply, name="grad_factor"))
    assert round(right["surrogate"], 2) == 2.0
    assert round(wrong["surrogate"], 1) == 1.0


def test_a_changed_backward_pass_gives_other_curves(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GradFactor, "backward", staticmethod(lambda ctx, v: (v, None)))
    now, record = script.measured(GRAD_FACTOR), read(GRAD_FACTOR)
    assert lines(now, "gradient")["gradient, f = 0.1"] == lines(record, "gradient")["gradient, f = 1"]
    assert now["numbers"]["slopes"] == pytest.approx({"forward": 2.0, "surrogate": 1.0}, abs=0.01)


def test_the_script_writes_what_it_prints(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    threads = torch.get_num_threads()
    try:
        script.main(["--out", str(tmp_path)])
    finally:
        torch.set_num_threads(threads)
    assert "grad_factor: slopes of the Taylor remainder: forward 1.00, surrogate 2.00" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {f"{spec.name}.json" for spec in FIGURED}
