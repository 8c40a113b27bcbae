"""Every directive and role makes the same of Markdown and of reST, has an object that a link finds, and bears -j 2."""

from __future__ import annotations

import shutil
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bs4 import BeautifulSoup

from gradspec._record import to_text
from gradspec.law import Finding, Status
from gradspec.report import write_record
from gradspec.sphinx_ext import _setup as core
from gradspec.sphinx_ext.domain._domain import GradspecDomain
from gradspec.sphinx_ext.domain._objects import OBJECTS
from gradspec_lab._summary import CUDA, summary_text
from gradspec_lab.selftest._record import Matrix, Subject
from gradspec_lab.selftest._seeds_record import Seeds
from gradspec_lab.sphinx import _setup as laboratory
from gradspec_lab.sphinx._setup import ROLES
from sphinx_ext.handmade import (
    LAW,
    ROOTS,
    SHEET,
    Built,
    Project,
    breaking,
    copied,
    normal,
    report,
    resealed,
    verdict,
    with_the_laboratory,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

PEER = "pub.Scale"
RECORDS = Path(__file__).parents[2] / "docs" / "records"
#: Of the extension, of the entry points of the package, and of the laboratory.
DIRECTIVES = (*core.DIRECTIVES, "gradspec-graph", *laboratory.DIRECTIVES)


@dataclass(frozen=True, kw_only=True)
class Written:
    """A directive with an argument, options and one paragraph, in either language."""

    argument: str = ""
    option: str = ""
    body: str = ""

    def markdown(self, name: str) -> str:
        lines = [f"```{{{name}}} {self.argument}".rstrip(), *filter(None, [self.option]), self.body, "```"]
        return "\n".join([f"# {name}", "", *lines, ""])

    def rest(self, name: str) -> str:
        rows = [f".. {name}:: {self.argument}".rstrip(), *(f"   {row}" for row in filter(None, [self.option]))]
        return "\n".join([name, "=" * len(name), "", *rows, "", *(f"   {row}" for row in self.body.split("\n")), ""])


#: A new directive needs an entry here.
PAGES: Mapping[str, Written] = {
    "gradspec-function": Written(argument="scale", body="What *it* is."),
    "gradspec-operator": Written(argument="op", body="What *it* is."),
    "gradspec-module": Written(argument="net", body="What *it* is."),
    "gradspec-text": Written(argument="words", body="What *it* is."),
    "gradspec-audit": Written(argument="audits.json mod:Thing"),
    "gradspec-benchmark": Written(argument="benchmarks/*.json"),
    "gradspec-checkers": Written(argument="kills.json"),
    "gradspec-cuda": Written(argument="cuda.json"),
    "gradspec-curves": Written(argument="curves.json error", option=":log:", body="The error *falls*."),
    "gradspec-failure": Written(argument="failure.json"),
    "gradspec-fields": Written(argument="gradspec.spec._base:Case"),
    "gradspec-campaign": Written(argument="campaign.json"),
    "gradspec-gallery": Written(argument="gallery.json"),
    "gradspec-graph": Written(argument="x", body="from gradspec.text import Variable\nx = Variable('a', role='word')"),
    "gradspec-kill-matrix": Written(argument="kills.json", option=":seeds: seeds.json"),
    "gradspec-law": Written(argument="vjp"),
    "gradspec-laws": Written(option=":kind: function"),
    "gradspec-map": Written(argument="maps.json slope", body="The height *rises*."),
    "gradspec-matrix": Written(),
    "gradspec-package-specs": Written(argument="package_specs.json"),
    "gradspec-peers": Written(),
    "gradspec-symptoms": Written(),
    "gradspec-versions": Written(argument="versions", option=":transforms:"),
}
#: A new role needs an entry here.
TARGETS: Mapping[str, str] = {
    "cuda": "cuda.json",
    "spec": "scale",
    "function": "scale",
    "operator": "op",
    "module": "net",
    "text": "words",
    "law": "vjp",
    "matrix": "function",
    "differences": "scale",
    "peer": PEER,
    "record": "curves error",
    "benchmark": "two_loops",
    "kill-matrix": "kills",
    "number": "curves.json numbers.noise.1 .1%",
}


def prepared(folder: Path, suffix: str) -> Project:
    """Return a project with a page for each directive, and one of all roles, written in one language."""
    project = with_the_laboratory(copied("test-function", folder))
    source = project.source
    for page in (*source.glob("*.md"), *source.glob("*.rst")):
        page.unlink()
    made = report(project)
    kinds = {"net": ("module", "demo.Net"), "words": ("text", "demo.Words"), "op": ("operator", "demo.op")}
    plain = {key: value for key, value in SHEET.items() if key not in ("effects", "tex", "wrt", "differences")}
    inputs = [{"name": "x", "type": "Tensor", "shape": "", "dtype": "", "gradient": True, "text": "It."}]
    own = {"inputs": inputs, "returns": "It.", "differences": [], "frozen": [], "io_bound": True}
    own |= {"operator": "demo::op", "schema": "demo::op(Tensor x) -> Tensor", "writes": ["state"], "devices": ["cpu"]}
    own |= {"dispatch": {"CPU": "cpu"}}
    others = {name: plain | own | {"kind": kind, "documented": [target]} for name, (kind, target) in kinds.items()}
    laws = {"vjp": made.laws["vjp"] | {"kinds": ["function", "operator", "module", "text"]}}
    verdicts = [verdict("vjp", "factor 2"), *(verdict("vjp", "one", None, name) for name in others)]
    sources = {f"spec {name}": made.sources["spec scale"] for name in ("scale", *others)}
    project.write(replace(made, sheets={**made.sheets, **others}, laws=laws, sources=sources, verdicts=tuple(verdicts)))
    bad = Finding(status=Status.BROKEN, message="off by a sign")
    published = replace(
        made,
        provenance={**made.provenance, "packages": {"pub": "1.0"}},
        sheets={PEER: made.sheets["scale"]},
        laws={"vjp": LAW | {"family": "derivative"}},
        sources={},
        verdicts=(verdict("vjp", "factor 2", bad, PEER),),
    )
    write_record(published, source / "peers.json")
    device = {"date": "2026-01-02", "device": "an abacus", "torch": "2.11.0", "commit": "abc123"}
    device |= {"profile": {"compiled_cases": 1, "backend": "inductor"}}
    summarised = replace(made, provenance=device, verdicts=(verdict("vjp", "factor 2"),))
    (source / "cuda.json").write_text(summary_text(summarised, CUDA), encoding="utf-8")
    write_record(breaking(made), source / "failure.json")
    (source / "gallery.json").write_text(to_text("gallery", GALLERY), encoding="utf-8")
    for name in ("campaign.json", "package_specs.json"):
        shutil.copy(RECORDS / name, source / name)
    (source / "curves.json").write_bytes((ROOTS / "test-plot" / "record.json").read_bytes())
    resealed(source / "curves.json")
    (source / "train.py").write_bytes((ROOTS / "test-plot" / "train.py").read_bytes())
    (source / "maps.json").write_text(to_text("experiment", MAPS), encoding="utf-8")
    (source / "benchmarks").mkdir()
    loops = ROOTS / "test-benchmark" / "benchmarks" / "loops.json"
    (source / "benchmarks" / "loops.json").write_bytes(loops.read_bytes())
    resealed(source / "benchmarks" / "loops.json")
    subject = Subject(sort="diseased", name="slip", group="function", killed_by=("vjp",), own=("vjp",))
    matrix = Matrix(provenance={"date": "2026-01-02"}, laws=("vjp",), population={"diseased": 1}, subjects=(subject,))
    (source / "kills.json").write_text(matrix.to_json(), encoding="utf-8")
    swept = {"run": 9, "specs": ["scale"], "laws": ["vjp"], "verdicts": 9, "by_law": {"vjp": 9}, "failures": []}
    seeds = Seeds(provenance={"date": "2026-01-02"}, swept=swept)
    (source / "seeds.json").write_text(seeds.to_json(), encoding="utf-8")
    (source / "versions").mkdir()
    (source / "versions" / "one.json").write_text(to_text("experiment", VERSION), encoding="utf-8")
    (source / "audits.json").write_text(to_text("audits", AUDITS), encoding="utf-8")

    for name in DIRECTIVES:
        written = PAGES[name]
        text = written.markdown(name) if suffix == "md" else written.rest(name)
        (source / f"{name}.{suffix}").write_text(text, encoding="utf-8")
    mark = "{{gradspec:{}}}`{}`" if suffix == "md" else ":gradspec:{}:`{}`"
    roles = "\n\n".join(mark.format(role, target) for role, target in TARGETS.items())
    (source / f"roles.{suffix}").write_text(f"{TITLE[suffix].format('Roles')}\n\n{roles}\n", encoding="utf-8")
    listed = "\n".join([*DIRECTIVES, "roles"])
    toctree = f".. toctree::\n\n   {listed.replace(chr(10), chr(10) + '   ')}\n"
    content = f"```{{toctree}}\n{listed}\n```\n" if suffix == "md" else toctree
    (source / f"index.{suffix}").write_text(f"{TITLE[suffix].format('Pairs')}\n\n{content}", encoding="utf-8")
    return project


TITLE = {"md": "# {}", "rst": "{}\n====="}
MAPS = {
    "provenance": {"date": "2026-01-02"},
    "maps": {
        "slope": {
            "title": "A slope",
            "x": {"label": "east", "values": [0, 1]},
            "y": {"label": "north", "values": [0, 1]},
            "value": {"label": "height"},
            "rows": [[0, 1], [2, 3]],
        }
    },
}
VERSION = {
    "name": "torch 2.13.0",
    "provenance": {"date": "2026-01-02", "torch": "2.13.0"},
    "transforms": {"backward()": {"Plain": "right"}},
}
GALLERY = {
    "provenance": {"date": "2026-01-02"},
    "measured_with": {"torch": "2.13.0", "python": "3.11"},
    "functions": [
        {
            "package": "pub",
            "version": "1.0",
            "class": "Thing",
            "reproduce": ["gradspec audit pub:Thing"],
            "found": [{"rank": "training", "what": "The gradient is", "measured": "2, and not 1", "laws": ["vjp"]}],
            "deliberate": ["its name says so"],
            "report": "https://pub.example/issues",
        }
    ],
}
AUDITS = {
    "provenance": {"date": "2026-01-02"},
    "audits": [
        {
            "name": "mod:Thing",
            "package": "pub",
            "version": "1.0",
            "target": "pub.mod:Thing",
            "command": "gradspec audit pub.mod:Thing",
            "verdicts": {"vjp": "broken", "jvp": "holds", "formula": "holds"},
            "findings": [{"law": "vjp", "status": "broken", "message": "off by a sign"}],
        }
    ],
}


@pytest.fixture(scope="module")
def markdown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Built]:
    project = prepared(tmp_path_factory.mktemp("markdown"), "md")
    built = project.build()
    assert (built.returncode, built.warnings) == (0, [])
    return project, built


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = prepared(tmp_path_factory.mktemp("rest"), "rst")
    built = project.build()
    assert (built.returncode, built.warnings) == (0, [])
    return project


@pytest.mark.parametrize("page", [*DIRECTIVES, "roles"])
def test_markdown_and_rest_make_the_same_doctree(page: str, markdown: tuple[Project, Built], rest: Project) -> None:
    tree = markdown[0].doctree(page).pformat()
    assert normal(tree) == normal(rest.doctree(page).pformat())
    assert "not measured" not in tree


def test_every_directive_role_and_object_is_tried() -> None:
    assert set(PAGES) == set(DIRECTIVES)
    assert set(TARGETS) == {*GradspecDomain.roles, *ROLES}
    assert set(OBJECTS) <= set(GradspecDomain.roles)


@pytest.mark.parametrize("kind", OBJECTS)
def test_an_object_is_exported_indexed_and_linked(kind: str, markdown: tuple[Project, Built]) -> None:
    built, name = markdown[1], TARGETS[kind]
    listed = zlib.decompress((built.folder / "objects.inv").read_bytes().split(b"zlib.\n")[1]).decode()
    (line,) = (line for line in listed.splitlines() if line.startswith(f"{name} gradspec:{kind} "))
    address = line.removeprefix(f"{name} gradspec:{kind} ").split()[1]
    page, _, anchor = address.partition("#")
    anchor = anchor.replace("$", name)
    assert BeautifulSoup((built.folder / page).read_text(encoding="utf-8"), "html.parser").find(id=anchor)
    for where in ("roles", "gradspec-objects"):
        links = BeautifulSoup(built.html(where), "html.parser").find_all("a", href=f"{page}#{anchor}")
        assert name in [link.get_text() for link in links], where
    index = BeautifulSoup(built.html("genindex"), "html.parser")
    assert index.find("a", href=f"{page}#{anchor}"), "the general index"
    assert f'"{name.rpartition(".")[2]}"' in (built.folder / "searchindex.js").read_text(encoding="utf-8"), "the search"


def test_the_index_lists_specs_by_kind(markdown: tuple[Project, Built]) -> None:
    shown = (
        BeautifulSoup(markdown[1].html("gradspec-objects"), "html.parser")
        .get_text(" ")
        .replace("\N{NO-BREAK SPACE}", " ")
    )
    assert [title for title in ("Specs: function", "Specs: module", "Specs: text", "Laws") if title not in shown] == []


@pytest.mark.slow
def test_two_processes_make_the_same_pages(markdown: tuple[Project, Built], tmp_path: Path) -> None:
    built = prepared(tmp_path, "md").build("-j", "2")
    assert (built.returncode, built.warnings) == (0, [])
    names = sorted(path.relative_to(built.folder) for path in built.folder.rglob("*.html"))
    alone = markdown[1].folder
    assert names == sorted(path.relative_to(alone) for path in alone.rglob("*.html"))
    assert len(names) > len(DIRECTIVES)
    assert [name for name in names if (alone / name).read_bytes() != (built.folder / name).read_bytes()] == []
    assert (alone / "objects.inv").read_bytes() == (built.folder / "objects.inv").read_bytes()
