"""The symptom index has a row for each kind of reason that the code makes, and no other."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import gradspec
from gradspec._symptoms import SYMPTOMS
from gradspec.cli import main
from gradspec.laws import LAWS

SOURCE = Path(gradspec.__file__).parent


def kinds_in(tree: ast.AST) -> set[str]:
    """Return the kinds of the reasons that a file makes; a kind that is not written as a text is an error."""
    made = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Reason")
    given = [word.value for node in made for word in node.keywords if word.arg == "kind"]
    return {ast.literal_eval(kind) for kind in given}


def test_each_kind_of_reason_has_one_row():
    made = {kind for path in SOURCE.rglob("*.py") for kind in kinds_in(ast.parse(path.read_text(encoding="utf-8")))}
    listed = [row.kind for row in SYMPTOMS]

    assert len(made) > 50
    assert sorted(listed) == sorted(made), "write what it looks like, its cause and its remedy in gradspec/_symptoms"


def test_a_kind_is_found_where_it_is_made():
    assert kinds_in(ast.parse("why = Reason(kind='new', words=said)\nother(kind='none')")) == {"new"}


def test_each_row_names_laws_and_no_kind_is_called_as_a_law():
    names = {law.name for law in LAWS}

    assert [row.kind for row in SYMPTOMS if not row.laws or set(row.laws) - names] == []
    assert names & {row.kind for row in SYMPTOMS} == set()


def test_the_command_line_has_the_rows_as_text_and_as_json():
    run = CliRunner().invoke
    everything = json.loads(run(main, ["explain", "--format", "json"]).stdout)
    (one,) = json.loads(run(main, ["explain", "factor", "--format", "json"]).stdout)

    assert [row["kind"] for row in everything] == [row.kind for row in SYMPTOMS]
    assert one in everything
    assert set(one) == {"kind", "symptom", "cause", "remedy", "laws"}
    assert f"remedy:  {one['remedy']}" in run(main, ["explain", "factor"]).stdout
    assert run(main, ["explain"]).stdout.count("  symptom: ") == len(SYMPTOMS)
    assert json.loads(run(main, ["explain", "vjp", "--format", "json"]).stdout)["name"] == "vjp"


@pytest.mark.parametrize("wrong", ["facto", "vjpp"])
def test_a_name_that_is_neither_is_one_line(wrong):
    done = CliRunner().invoke(main, ["explain", wrong])

    assert (done.exit_code, done.output.strip().count("\n")) == (2, 0)
