"""Code within a line names what is there: a command, an option, a session, an object, an argument, a listed word."""

from __future__ import annotations

import re
import tomllib

import pytest

from pages.inline_code import WORDS, Span, known, sessions, spans, wrong


def test_all_code_within_lines_names_what_is_there() -> None:
    found = list(spans())
    assert len(found) > 2_000
    assert [f"{span.where}: `{span.code}`: {said}" for span in found if (said := wrong(span))] == []


def test_each_listed_word_is_used_and_is_needed() -> None:
    used = {re.sub(r"\(.*", "", span.code) for span in spans()}
    words = [word for words in tomllib.loads(WORDS.read_text(encoding="utf-8")).values() for word in words]
    assert sorted(set(words) - used) == []
    assert sorted(set(words) & known()) == []


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("gradspec chekc TARGET", "gradspec has no command 'chekc'"),
        ("gradspec check TARGET --recrod PATH", "gradspec check has no option --recrod"),
        ("gradspec check gradspec.functoins", "there is no gradspec.functoins"),
        ("nox -s recrods", "noxfile.py has no session 'recrods'"),
        ("nox -s lint tpyes", "noxfile.py has no session 'tpyes'"),
        ("pytest --gradspec-recrod", "the plugin has no option --gradspec-recrod"),
        ("python -m pip install .[katxe]", "gradspec has no extra 'katxe'"),
        ("python src/gradspec_lab/rome.py", "there is no src/gradspec_lab/rome.py"),
        ("GradFcator", "nothing has that name, and it is in no list"),
        ("torch.autograd.Functoin", "there is no such object"),
        ("gradspec.text.Varaible", "there is no such object"),
        ("FunctionSpec.primla", "there is no such object"),
    ],
)
def test_a_wrong_name_is_found(code: str, said: str) -> None:
    assert wrong(Span("a page", code)) == said


@pytest.mark.parametrize(
    "code",
    [
        "gradspec check TARGET --record PATH",
        "nox -s lab -- sample",
        "FunctionSpec.primal",
        "GradFactor",
        "torch.func.grad(loss)",
        "a + b",
        "x.grad",
    ],
)
def test_a_right_name_is_left_alone(code: str) -> None:
    assert wrong(Span("a page", code)) == ""


def test_the_sessions_are_read_with_their_names() -> None:
    assert {"tests", "local-model", "sphinx", "lab"} <= sessions()
