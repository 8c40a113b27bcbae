"""The edits that are drawn at random: each is made where it says, and changes the program."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gradspec_lab.campaigns.random_edits import edits_in

ROOT = Path(__file__).resolve().parents[2]
TEXT = '''"""A module: é."""

import os


def f(x: int | None, y=True) -> "str":
    """Return a number.

    >>> f(2)
    """
    if x < 2 and y:
        print("é", f"{x + 1}")
    return x * 3
'''


@pytest.mark.parametrize(
    ("what", "line", "becomes"),
    [
        ("an operator", 6, None),
        ("a text", 6, None),
        ("a truth value", 6, 'def f(x: int | None, y=False) -> "str":'),
        ("a condition", 11, "    if (not (x < 2 and y)):"),
        ("a connective", 11, "    if ((x < 2) or (y)):"),
        ("a comparison", 11, "    if (not (x < 2)) and y:"),
        ("a number", 11, "    if x < (2 + 1) and y:"),
        ("a statement", 12, "        pass"),
        ("a text", 12, "        print('é~', f\"{x + 1}\")"),
        ("a return", 13, "    return None"),
        ("an operator", 13, "    return ((x) + (3))"),
        ("a number", 13, "    return x * (3 + 1)"),
    ],
)
def test_an_edit_is_made_where_it_says(what, line, becomes):
    made = [edit for edit in edits_in(TEXT) if (edit.what, edit.line) == (what, line)]

    assert [edit.applied(TEXT).splitlines()[line - 1] for edit in made] == ([becomes] if becomes else [])
    assert {edit.place for edit in made} <= {"f"}


def test_what_is_said_of_types_is_an_annotation():
    made = {edit.applied(TEXT).splitlines()[5] for edit in edits_in(TEXT) if edit.what == "an annotation"}

    assert 'def f(x: ((int) + (None)), y=True) -> "str":' in made
    assert "def f(x: int | None, y=True) -> 'str~':" in made


def test_a_docstring_with_an_example_gets_another_number():
    (edit,) = [edit for edit in edits_in(TEXT) if edit.what == "a docstring" and edit.place == "f"]

    assert "f(3)" in edit.applied(TEXT)


@pytest.mark.slow
def test_each_edit_of_the_package_can_be_parsed_and_changes_what_is_there():
    for file in sorted((ROOT / "src/gradspec/laws/tensor").glob("*.py")):
        text = file.read_text(encoding="utf-8")
        edits = edits_in(text)
        assert edits or not ast.parse(text).body[1:]
        for edit in edits[::20]:
            assert ast.dump(ast.parse(edit.applied(text))) != ast.dump(ast.parse(text)), edit
