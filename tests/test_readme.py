"""The README is true: its Python runs, and its commands are sessions that exist."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from gradspec import CheckError
from gradspec._record import read_experiment
from gradspec.render import failure_text
from gradspec.report import read_record
from gradspec_lab.audits.gallery import TRUTH, gallery

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_of_the_readme_runs():
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)

    assert len(blocks) == 3
    assert "SPEC" in names


def test_the_comment_of_the_readme_names_the_law_that_breaks_without_the_surrogate():
    (line,) = [line for line in README.splitlines() if "surrogate left out" in line]
    where = f"README.md:{README.splitlines().index(line) + 1}"
    (law,) = re.findall(r"# With the surrogate left out, `(\w+)` is broken", line)
    first = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    without = first.replace(", surrogate=lambda x: x", "")
    with pytest.raises(CheckError) as raised:
        exec(compile(without, "README.md", "exec"), {})
    (broken,) = re.findall(r"breaks `(\w+)` on case", str(raised.value))

    assert without != first
    assert broken == law, f"{where}: without the surrogate {broken} breaks, and the comment says {law}"


def test_the_prose_of_the_readme_takes_two_minutes():
    text = re.sub(r"```.*?```|!\[.*?\]\(.*?\)|\]\(.*?\)|[#*|-]", " ", README, flags=re.DOTALL)

    assert len(text.split()) <= 400


def test_the_failure_of_the_readme_is_the_recorded_one():
    report = read_record(ROOT / "docs" / "records" / "first_failure.json")
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)

    assert shown == failure_text(report.violations[0]) + "\n"


def test_the_headline_of_the_gallery_is_that_of_its_record():
    functions = gallery(read_experiment(TRUTH))["functions"]
    packages = {function["package"] for function in functions}

    assert f"{len(functions)} published functions of {len(packages)} packages" in " ".join(README.split())


def test_what_the_readme_says_of_the_gallery_was_found():
    functions = gallery(read_experiment(TRUTH))["functions"]
    found = [one for function in functions for one in function["found"]]
    dropped = {one["what"].strip("`") for one in found if one["measured"].endswith("a gradient is None")}
    wrong = {law for one in found if one["rank"] == "training" for law in one["laws"]}
    text = " ".join(README.split())
    (named,) = re.findall(r"from wrong gradients in plain training to gradients that `([\w.]+)` drops", text)
    line = next(n for n, line in enumerate(README.splitlines(), 1) if f"`{named}` drops" in line)

    assert named in dropped, f"README.md:{line}: {named} drops no gradient in the gallery; what does: {sorted(dropped)}"
    assert "vjp" in wrong, f"README.md:{line}: no gradient is wrong in plain training in the gallery"


def test_the_commands_of_the_readme_are_sessions():
    file = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    functions = [node for node in file.body if isinstance(node, ast.FunctionDef)]
    sessions = [f.name for f in functions if any("nox.session" in ast.unparse(d) for d in f.decorator_list)]
    commands = re.findall(r"^python -m pip install nox && nox -s (\w+)$", README, re.MULTILINE)
    named = re.findall(r"`(\w+)`", README.partition("`nox --list` shows the other sessions")[2].partition("\n\n")[0])

    assert commands == ["docs", "tests"]
    assert named
    assert {*commands, *named} <= set(sessions)
    # What only takes a session is one, or a lost decorator hides it from everybody.
    assert {f.name for f in functions} - set(sessions) == {"run_tests", "two_versions"}


def test_ci_runs_the_sessions_that_nox_runs_by_default_and_the_commands_of_the_readme_as_a_reader_does():
    (default,) = re.findall(
        r"^nox\.options\.sessions = (\[.*\])$", (ROOT / "noxfile.py").read_text("utf-8"), re.MULTILINE
    )
    ci = (ROOT / ".ci" / "run").read_text("utf-8")
    named = [name for names in re.findall(r'"\$nox" (?:--no-venv )?-s ([\w ]+)', ci) for name in names.split()]
    read = re.findall(r"^(\w+)=\$\(readme_command (\w+)\)$", ci, re.MULTILINE)
    run = re.findall(r'^reader \S+ "\$(\w+)"', ci, re.MULTILINE)

    assert read == [("docs", "docs"), ("tests", "tests")]
    assert run == ["docs", "tests"]
    assert sorted({*named, *run} - {"lab"}) == sorted(ast.literal_eval(default))
    assert "NOX_" not in ci, "a variable of ours hides what a reader sees"
    assert 'env -i PATH="$PWD/$1/bin:$PATH" HOME="$HOME" "${needed[@]}" bash -c "$2"\n' in ci
    assert 'wait "$beside" || failed=$?\n' in ci, "what runs beside the site may fail unnoticed"
    assert 'reader build/tests-reader "$tests" || failed=$?\n' in ci
    assert ci.endswith('wait "$drift" || { failed=$?; cat build/drift.log; }\nexit "$failed"\n')


def test_the_pictures_of_the_readme_exist():
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)

    assert pictures
    assert [p for p in pictures if not (ROOT / p).is_file()] == []


def normal(pin):
    """Return a pin as indexes spell it, without blanks around its marker."""
    name, _, rest = pin.partition("==")
    return f"{re.sub(r'[-_.]+', '-', name).lower()}=={re.sub(r' *; *', ';', rest)}"


def test_the_versions_that_are_tested_are_pinned_exactly():
    lines = (ROOT / "conf" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    split = [line.partition("==") for line in lines if line and not line.startswith("#")]
    pins = [name.lower() for name, _, version in split if "<" not in version]  # another pin is for an older Python
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = project["dependency-groups"].values()
    wanted = [*project["project"]["dependencies"], *(name for group in groups for name in group)]
    names = {re.split(r"[<>=\[]", name)[0].lower().replace("_", "-") for name in wanted}

    assert "torch==2.13.0" in lines
    assert len(pins) == len(set(pins))
    assert sorted(names - set(pins)) == []


def test_that_every_pin_but_torch_has_the_hashes_of_its_files():
    pins = (ROOT / "conf" / "constraints.txt").read_text(encoding="utf-8")
    hashed = (ROOT / "conf" / "hashes.txt").read_text(encoding="utf-8").replace("'", '"')
    pinned = sorted(normal(line) for line in pins.splitlines() if not line.startswith(("#", "torch==")))
    files = re.findall(r"^(\S+==.*?) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", hashed, re.MULTILINE)

    assert sorted(normal(name) for name, _ in files) == pinned  # or run `nox -s lab -- hashes`
    assert "torch==" not in hashed
