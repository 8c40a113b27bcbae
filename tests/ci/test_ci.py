"""The action and the page verify-in-ci.md, on a project of somebody else: what its workflow runs, and what it gets."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema
import yaml
from bs4 import BeautifulSoup
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Sarif

import gradspec
from gradspec.report import read_record
from pages.blocks import DOCS, ROOT, read_blocks

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
PROJECT = HERE / "project"
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
XSD = xmlschema.XMLSchema(ROOT / "tests" / "render" / "junit-10.xsd")
FORGOTTEN = "        return grad_y\n"
QUICK = "--law vjp --law primal"


def filled(text, values):
    """Return a text with its expressions replaced; one that nobody gives is an error."""
    return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda found: values[found[1]], text)


class Runner:
    """Runs the `run:` lines of the action as a runner does, but for what installs: it is there already."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        here = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
        self.env = {**os.environ, **here}

    def bash(self, script: str, **env: str) -> subprocess.CompletedProcess[str]:
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        return subprocess.run(
            command, cwd=self.folder, env={**self.env, **env}, capture_output=True, text=True, check=False, timeout=300
        )

    def action(self, **given: str) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
        """Run the action with inputs; return its last step, and its outputs."""
        unknown = set(given) - set(ACTION["inputs"])
        assert not unknown, f"the action has no input {unknown}"
        inputs = {name: given.get(name, said.get("default")) for name, said in ACTION["inputs"].items()}
        assert None not in inputs.values(), "an input that is required is not given"
        values = {f"inputs.{name}": value for name, value in inputs.items()}
        wrote = self.folder / "github_output"
        wrote.write_text("")
        for step in ACTION["runs"]["steps"]:
            if "pip install" in step["run"]:
                continue
            env = {name: filled(value, values) for name, value in step.get("env", {}).items()}
            run = self.bash(step["run"], GITHUB_OUTPUT=str(wrote), **env)
            said = dict(line.split("=", 1) for line in wrote.read_text().splitlines())
            values |= {f"steps.{step['id']}.outputs.{name}": value for name, value in said.items()}
        return run, {name: filled(said["value"], values) for name, said in ACTION["outputs"].items()}


def copied(folder: Path) -> Runner:
    shutil.copytree(PROJECT, folder / "project")
    return Runner(folder / "project")


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The project after its workflow, with every law."""
    runner = copied(tmp_path_factory.mktemp("ci"))
    workflow = yaml.safe_load((PROJECT / ".github/workflows/gradients.yml").read_text(encoding="utf-8"))
    (step,) = (s for s in workflow["jobs"]["gradspec"]["steps"] if "/gradspec@" in s.get("uses", ""))
    run, outputs = runner.action(**step["with"])
    return runner, run, outputs


def line_of_the_function() -> int:
    lines = (PROJECT / "yourpackage/ops.py").read_text(encoding="utf-8").splitlines()
    return 1 + lines.index("class ClipSTE(torch.autograd.Function):")


def test_that_the_action_installs_what_it_is_of():
    installs = [step["run"] for step in ACTION["runs"]["steps"] if "pip" in step["run"]]

    assert installs == ['python -m pip install "$GITHUB_ACTION_PATH"']


def test_that_no_input_is_pasted_into_a_script():
    assert not [step for step in ACTION["runs"]["steps"] if "${{" in step["run"]]


def test_that_the_workflow_fails_at_the_line_of_the_broken_function(ran):
    _, run, _ = ran
    annotations = [line for line in run.stdout.splitlines() if line.startswith("::")]

    assert run.returncode == 1, run.stderr
    (annotation,) = annotations
    assert annotation.startswith(
        f"::error file=yourpackage/ops.py,line={line_of_the_function()},title=gradspec%3A clip"
    )
    assert "right with `return " in annotation
    assert "clip_ste breaks `vjp` on case `matrix`" in run.stdout


def test_that_what_it_leaves_is_what_services_read(ran):
    runner, _, outputs = ran
    text = {name: (runner.folder / path).read_text(encoding="utf-8") for name, path in outputs.items()}
    XSD.validate(text["junit"])
    suites = ElementTree.fromstring(text["junit"]).findall("testsuite")
    (result,) = Sarif.model_validate_json(text["sarif"]).runs[0].results
    place = result.locations[0].physicalLocation
    page = BeautifulSoup(text["html"], "html.parser")

    assert [(suite.get("name"), suite.get("file"), suite.get("failures") == "0") for suite in suites] == [
        ("round_ste", "yourpackage/ops.py", True),
        ("clip_ste", "yourpackage/ops.py", False),
    ]
    assert (place.artifactLocation.uri, place.region.startLine) == ("yourpackage/ops.py", line_of_the_function())
    assert result.ruleId == "vjp"
    assert not page.find_all("script")
    assert [head.text for head in page.table.find_all("th")] == ["law", "round_ste", "clip_ste"]
    assert json.loads(text["badge"])["message"] == "1 finding"
    assert read_record(runner.folder / outputs["record"]).failures


def test_that_a_baseline_lets_it_pass_until_something_else_breaks(tmp_path):
    runner = copied(tmp_path)
    ops = runner.folder / "yourpackage/ops.py"
    _, outputs = runner.action(targets="yourpackage.specs", options=QUICK)
    shutil.copy(runner.folder / outputs["record"], runner.folder / "known.json")
    given = {"targets": "yourpackage.specs", "options": QUICK, "baseline": "known.json"}
    known, _ = runner.action(**given)
    ops.write_text(ops.read_text().replace("return torch.round(x)", "return torch.round(x + 1)"))
    worse, _ = runner.action(**given)
    text = ops.read_text().replace("torch.round(x + 1)", "torch.round(x)")
    mended = "        return grad_y * (_x.abs() <= 1)\n"
    ops.write_text(mended.join(text.rsplit(FORGOTTEN, 1)))
    better, _ = runner.action(**given)

    (block,) = (b for b in read_blocks((DOCS / "how-to/verify-in-ci.md").read_text("utf-8"), "") if b.kind == "text")
    assert known.returncode == 0, known.stderr
    assert known.stdout.partition("against")[2].partition("::")[0] == block.text.partition("against")[2]
    assert "::warning file=yourpackage/ops.py" in known.stdout
    assert "::error" not in known.stdout
    assert worse.returncode == 1
    assert "against the baseline: 1 new, 1 known, 0 mended" in worse.stdout
    assert re.findall("^::error .*title=gradspec%3A (round_ste breaks primal)", worse.stdout, flags=re.MULTILINE)
    assert better.returncode == 0, better.stdout
    assert "against the baseline: 0 new, 0 known, 2 mended\n  mended: clip_ste on `vjp`" in better.stdout


def test_that_the_commands_of_the_page_run_in_the_project(tmp_path):
    runner = copied(tmp_path)
    page = (DOCS / "how-to/verify-in-ci.md").read_text("utf-8")
    lines = [line for block in read_blocks(page, "") if block.kind == "sh" for line in block.text.splitlines()]
    assert len(lines) == 5
    for line in lines:
        quick = f"{line} {QUICK}" if line.startswith("gradspec check") else line
        run = runner.bash(quick)
        clean = "--exit-zero" in line or "--baseline" in line
        assert run.returncode == (0 if clean else 1), f"{line}: {run.stdout}{run.stderr}"
    for name in ("junit.xml", "gradspec.sarif", "report.html", "badge.json"):
        assert (runner.folder / name).stat().st_size > 0


@pytest.mark.parametrize("file", [".github/workflows/shards.yml", ".gitlab-ci.yml"])
def test_that_the_other_files_of_the_page_run_gradspec_as_it_is(tmp_path, file):
    runner = copied(tmp_path)
    found = yaml.safe_load((PROJECT / file).read_text(encoding="utf-8"))
    for job in found.get("jobs", found).values():
        scripts = job.get("script") or [step["run"] for step in job["steps"] if "run" in step]
        parts = job.get("strategy", {}).get("matrix", {}).get("part", [""])
        for script in (script for script in scripts if "pip install" not in script):
            assert shlex.split(script)[0] == "gradspec"
            for part in parts:
                line = script.replace("${{ matrix.part }}", str(part))
                run = runner.bash(f"{line} {QUICK}" if "check" in line else line)
                assert "Error" not in run.stderr, run.stderr
    assert run.returncode == 1  # the function is broken
    assert "clip_ste breaks `vjp`" in run.stdout


def test_that_a_report_of_a_wrong_verdict_asks_for_the_command_that_runs_it_again():
    form = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE/verdict.yml").read_text(encoding="utf-8"))
    (asked,) = (field for field in form["body"] if field["id"] == "again")

    assert asked["validations"]["required"]
    assert "behind `Again:`" in asked["attributes"]["description"]


def test_that_every_action_that_our_workflows_use_is_pinned_by_its_digest():
    for file in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        used = re.findall(r"uses: (\S+)(.*)", file.read_text(encoding="utf-8"))
        assert [name for name, said in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name)] == []
        assert [name for name, said in used if not re.fullmatch(r" # v\d+\.\d+\.\d+", said)] == []


def test_that_a_citation_is_of_this_version():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == gradspec.__version__


@pytest.mark.parametrize(
    ("file", "schema"),
    [
        (ROOT / "action.yml", "github-actions"),
        *((path, "github-workflows") for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))),
        *((path, "github-workflows") for path in sorted((PROJECT / ".github" / "workflows").glob("*.yml"))),
        (PROJECT / ".gitlab-ci.yml", "gitlab-ci"),
        (ROOT / "CITATION.cff", "citation-file-format"),
        (ROOT / ".github" / "ISSUE_TEMPLATE" / "verdict.yml", "github-issue-forms"),
        (ROOT / ".github" / "ISSUE_TEMPLATE" / "problem.yml", "github-issue-forms"),
        (ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml", "github-issue-config"),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else value,
)
def test_that_a_file_of_a_service_is_one(file, schema):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(file)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stdout
