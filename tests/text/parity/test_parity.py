"""Call for call, `gradspec.text` does over numbers what `torch.autograd` does: random programs on both.

GRADSPEC_PARITY_PROGRAMS says how many; `nox -s lab -- parity` runs 10,000.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest

from gradspec.text._engine import _pass as _engine
from gradspec.text._graph import _context, _gradients, _saved
from text.parity.compare import differences
from text.parity.programs import generate

PROGRAMS = int(os.environ.get("GRADSPEC_PARITY_PROGRAMS", "500"))
CHUNK = 50


@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_random_programs_agree(first: int) -> None:
    found = [line for seed in range(first, min(first + CHUNK, PROGRAMS)) for line in differences(generate(seed))]
    assert found == []


def test_they_agree_with_several_calls_in_flight_too() -> None:
    found = [line for seed in range(60) for line in differences(generate(seed), max_concurrency=8)]
    assert found == []


@pytest.mark.slow
def test_the_programs_reach_everything_that_they_are_to_compare() -> None:
    counts: Counter[str] = Counter()
    for seed in range(400):
        differences(generate(seed), counts=counts)
    rare = {name for name, n in counts.items() if n < 2}
    assert counts["backward calls"] > 500
    topics = {name.removeprefix("error: ") for name in counts if name.startswith("error: ")}
    assert {
        "a second time",
        "modified by an inplace operation",
        "incorrect number of gradients",
        "user error",
    } <= topics
    assert {"call", "backward", "grad", "hook", "node hook", "detach", "retain", "flag"} <= set(counts) - rare


def _latest_last(monkeypatch: pytest.MonkeyPatch) -> None:
    push = _engine.heappush
    monkeypatch.setattr(_engine, "heappush", lambda heap, item: push(heap, (-item[0], item[1])))


def _never_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_context.FunctionNode, "_free", lambda node: None)


def _full_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_context.FunctionNode, "needs_input_grad", property(lambda node: node._needs))


def _one_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_gradients, "merge", lambda gradients: gradients[0])


def _no_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_saved.SavedInput, "unpack", lambda saved, node: saved.variable)


def _write_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    accumulate = _engine.Pass.accumulate

    def written(self: Any, variable: Any, gradient: Any) -> None:
        accumulate(self, variable, gradient)
        variable._grad = gradient

    monkeypatch.setattr(_engine.Pass, "accumulate", written)


@pytest.mark.parametrize("disease", [_latest_last, _never_free, _full_flags, _one_of_two, _no_versions, _write_at_once])
def test_a_broken_engine_is_caught(disease: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    disease(monkeypatch)
    assert any(differences(generate(seed)) for seed in range(400))
