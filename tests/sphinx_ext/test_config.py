"""A value that an option cannot have is one warning, which names the option and what it takes."""

from __future__ import annotations

from dataclasses import fields

import pytest

from gradspec.sphinx_ext._config import Options, _accepted, _default
from sphinx_ext.handmade import Project

#: Each with words of the values that the option takes.
MISTAKEN = [
    ('gradspec_fail_on = "never"', "'never'", "one of 'wrong', 'refused', 'waste', 'limit'"),
    ('gradspec_fail_on = ["wrong"]', "['wrong']", "one of 'wrong', 'refused', 'waste', 'limit'"),
    ("gradspec_records = None", "None", "a list of paths"),
    ("gradspec_records = [5]", "[5]", "a list of paths"),
    ("gradspec_committed_records = {}", "{}", "a list of paths"),
    ("gradspec_law_pages = 5", "5", "the name of a folder"),
    ('gradspec_sections = ["a"]', "['a']", "titles with sections of a spec"),
    ("gradspec_sections = {5: 'Laws'}", "{5: 'Laws'}", "titles with sections of a spec"),
    ("gradspec_annotations = None", "None", "abbreviations with full names"),
    ('gradspec_inventories = {"a": "b"}', "{'a': 'b'}", "names, each with an address and a path"),
    ('gradspec_llms = "yes"', "'yes'", "True or False"),
    ("gradspec_descriptions = []", "[]", "True or False"),
]


@pytest.mark.parametrize(("line", "value", "words"), MISTAKEN, ids=[line for line, _, _ in MISTAKEN])
def test_a_mistaken_value_is_a_warning_in_each_build(project: Project, line: str, value: str, words: str) -> None:
    with (project.source / "conf.py").open("a", encoding="utf-8") as conf:
        conf.write(f"{line}\n")
    name = line.partition(" ")[0]
    for _ in range(2):
        made = project.build("-b", "dummy")
        said = [warning for warning in made.warnings if name in warning]
        assert said[0].startswith(f"WARNING: {name} is {value}, so the build uses its default: it takes {words}")
        assert said[0].endswith("[gradspec.config]")
        assert (made.returncode, len(said)) == (1, 1 if "gradspec_records" not in name else len(said))
        assert "Traceback" not in "".join(made.warnings)


@pytest.mark.parametrize("option", fields(Options), ids=lambda option: option.name)
def test_an_option_takes_its_default(option: object) -> None:
    accepts, words = _accepted(option.name)  # type: ignore[attr-defined]
    assert accepts(_default(option))  # type: ignore[arg-type]
    assert words


@pytest.mark.parametrize(
    "line", ['import pathlib; gradspec_records = pathlib.Path("record.json")', "gradspec_llms = 1"]
)
def test_what_works_as_well_is_taken_in_silence(project: Project, line: str) -> None:
    with (project.source / "conf.py").open("a", encoding="utf-8") as conf:
        conf.write(f"{line}\n")
    made = project.build("-b", "dummy")
    assert [warning for warning in made.warnings if "gradspec" in warning] == []


def test_a_folder_of_laws_outside_of_the_pages_is_a_warning(project: Project) -> None:
    with (project.source / "conf.py").open("a", encoding="utf-8") as conf:
        conf.write('gradspec_law_pages = "../elsewhere"\n')
    (line,) = project.build("-b", "dummy").warnings
    assert "gradspec_law_pages is '../elsewhere': name a folder within the source of the pages" in line
    assert not (project.source.parent / "elsewhere").exists()


def test_a_misspelt_option_is_named_and_a_value_of_the_projects_own_is_not(project: Project) -> None:
    with (project.source / "conf.py").open("a", encoding="utf-8") as conf:
        conf.write('gradspec_record = ["record.json"]\ngradspec_version_of_mine = 1\n')
    made = project.build("-b", "dummy")
    said = [warning for warning in made.warnings if "gradspec.config" in warning]
    assert said == ["WARNING: there is no option gradspec_record: did you mean gradspec_records? [gradspec.config]"]
