"""Progress: each call that runs is reported once, and nothing of it stays behind."""

from __future__ import annotations

import io
import sys

import pytest

from gradspec.text import Variable, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def chain(length: int) -> tuple[Variable, Variable]:
    x = Variable("a", requires_grad=True)
    y = x
    for _ in range(length):
        y = y + "b"
    return x, y


@pytest.mark.parametrize("limit", [1, 4])
def test_each_call_is_reported_once_and_the_feedback_is_the_same(limit: int) -> None:
    x, y = chain(3)
    told: list[tuple[int, int, str]] = []
    with progress(y, report=lambda *step: told.append(step)):
        y.backward(Variable("shorter"), max_concurrency=limit)

    assert told == [(1, 3, "Add"), (2, 3, "Add"), (3, 3, "Add")]
    assert x.grad is not None
    assert x.grad.data == "shorter"


def test_nothing_is_reported_behind_the_block() -> None:
    _, y = chain(1)
    told: list[tuple[int, int, str]] = []
    with progress(y, report=lambda *step: told.append(step)):
        pass
    y.backward(Variable("shorter"))

    assert told == []


def test_a_terminal_shows_one_line_and_clears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    _, y = chain(2)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress(y):
        y.backward(Variable("shorter"))

    assert sys.stderr.getvalue() == "\r\x1b[Kbackward 1/2 Add\r\x1b[Kbackward 2/2 Add\r\x1b[K"


def test_a_file_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    _, y = chain(2)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress(y):
        y.backward(Variable("shorter"))

    assert sys.stderr.getvalue() == ""


def test_a_leaf_alone_has_nothing_to_report() -> None:
    x = Variable("a", requires_grad=True)
    with progress(x, report=lambda *step: pytest.fail(str(step))):
        x.backward(Variable("shorter"))

    assert x.grad is not None
