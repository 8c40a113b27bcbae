"""The page of a function: what it shows, in which order, from Markdown and from reST alike."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag

from gradspec.law import Finding, Rank, Status
from gradspec.report import Report, read_record, write_record
from sphinx_ext.handmade import LAW, SHEET, Built, Project, copied, normal, older, report, source_of, verdict

REST = """\
Scale
=====

.. gradspec-function:: scale

   .. autofunction:: demo.scale
   .. automethod:: demo.Scale.apply

See :py:class:`demo.Scale` and :gradspec:law:`vjp`.

.. toctree::

   vjp
   matrix
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    made = copied("test-function", tmp_path_factory.mktemp("function")).build()
    assert (made.returncode, made.warnings) == (0, [])
    return made


@pytest.fixture(scope="module")
def soup(built: Built) -> BeautifulSoup:
    return BeautifulSoup(built.html(), "html.parser")


def page(project: Project) -> BeautifulSoup:
    built = project.build()
    assert (built.returncode, built.warnings) == (0, [])
    return BeautifulSoup(built.html(), "html.parser")


def section(soup: BeautifulSoup, title: str) -> str:
    found = soup.find(id=f"scale-{title}")
    assert found is not None
    return " ".join(found.get_text(" ").split())


def test_the_sections_stand_in_the_fixed_order(soup: BeautifulSoup) -> None:
    titles = [heading.get_text().rstrip("¶") for heading in soup.find_all("h2")]
    assert titles == [
        "Examples",
        "What it computes",
        "Arguments",
        "Errors",
        "Laws",
        "Differences from published implementations",
        "Members",
        "References",
        "Provenance",
    ]


def with_sections(folder: Path, places: str) -> Project:
    """Return a project whose page has sections of its own behind the spec."""
    project = copied("test-function", folder)
    with (project.source / "conf.py").open("a", encoding="utf-8") as conf:
        conf.write(f"gradspec_sections = {places}\n")
    page = project.source / "index.md"
    own = "".join(f"## {title}\n\nIts words.\n\n" for title in ("Cost", "Notes", "Use"))
    page.write_text(page.read_text(encoding="utf-8").replace("```{toctree}", own + "```{toctree}"), encoding="utf-8")
    return project


def test_a_section_of_the_page_is_put_where_the_configuration_says(tmp_path: Path) -> None:
    places = {"Use": "Examples", "Cost": "What comes out", "Elsewhere": "Laws"}  # it has no "What comes out"
    shown = page(with_sections(tmp_path, repr(places)))
    titles = [heading.get_text().rstrip("¶") for heading in shown.find_all("h2")]

    assert titles[:3] == ["Use", "Examples", "What it computes"]
    assert titles[titles.index("Errors") - 1] == "Cost"
    assert titles[-2:] == ["Provenance", "Notes"]
    assert "Its words." in shown.find(id="use").get_text()


def test_a_place_that_no_page_has_is_refused(tmp_path: Path) -> None:
    built = with_sections(tmp_path, "{'Use': 'Exmples'}").build()

    assert built.returncode != 0
    assert any("'Use' is put before 'Exmples': a spec has the sections 'Examples', " in line for line in built.warnings)


def test_the_signature_has_types_and_no_ctx_and_can_be_linked(soup: BeautifulSoup) -> None:
    signature = soup.find("dt", id="demo.Scale")
    assert signature is not None
    shown = signature.get_text().replace("[source]", "").rstrip("¶")
    assert shown.split() == ["demo.Scale.apply(x:", "Tensor,", "f:", "float", "|", "Tensor", "=", "1.0)", "→", "Tensor"]
    assert signature.find("a", class_="internal", string="[source]"), "viewcode"
    assert soup.select_one('p a[href="#demo.Scale"]'), "{py:class}`demo.Scale`"


def test_objects_inv_lists_the_class_the_function_and_the_law(built: Built) -> None:
    listed = zlib.decompress((built.folder / "objects.inv").read_bytes().split(b"zlib.\n")[1])
    for entry in (b"demo.Scale py:class", b"demo.Scale.apply py:method", b"scale gradspec:spec", b"vjp gradspec:law"):
        assert entry in listed


def test_the_measured_error_example_and_verdicts_are_shown(soup: BeautifulSoup) -> None:
    assert "Scale.apply(1.0, 'a') TypeError : f is a str" in section(soup, "errors")
    assert ">>> Scale.apply(2.0, 3.0)\n2.0" in soup.get_text()
    laws = section(soup, "laws")
    assert "✓ holds in 1 of 2 cases not applicable: empty input (nothing to differentiate)" in laws
    assert "Refused with an error, as declared: export." in section(soup, "laws")
    assert "gradspec check demo:SCALE" in section(soup, "provenance")


def test_an_example_that_is_shown_with_its_output_is_not_shown_twice(soup: BeautifulSoup) -> None:
    assert soup.get_text().count(">>> Scale.apply(2.0, 3.0)") == 1


def test_a_formula_that_no_law_checked_says_so(project: Project) -> None:
    made = report(project)
    project.write(replace(made, verdicts=tuple(v for v in made.verdicts if v.law != "formula")))
    assert "not checked" in section(page(project), "what-it-computes")
    assert "✓" not in section(page(project), "what-it-computes")


def test_a_formula_that_is_written_by_hand_is_shown_and_said_to_be_unchecked(project: Project) -> None:
    made = report(project)
    sheet = {**SHEET, "tex": {}, "stated": ["o = x M", r"\bar{x} = \bar{o} M"]}
    project.write(replace(made, sheets={"scale": sheet}))
    shown = page(project).find(id="scale-what-it-computes")
    assert shown is not None
    tex = [annotation.get_text() for annotation in shown.find_all("annotation")]
    assert tex == ["o = x M", r"\bar{x} = \bar{o} M"]
    assert "○ not checked" in shown.get_text()


def test_a_role_links_to_a_spec_of_its_kind_alone(project: Project) -> None:
    path = project.source / "matrix.md"
    path.write_text("# Matrix\n\n{gradspec:function}`scale`, {gradspec:spec}`scale`, {gradspec:module}`scale`\n")
    built = project.build()
    links = BeautifulSoup(built.html("matrix"), "html.parser").select("div.body p a")
    assert [link["href"] for link in links] == ["index.html#demo.Scale"] * 2
    (warning,) = built.warnings
    assert "matrix.md:3: WARNING: gradspec:module reference target not found: scale" in warning


def test_a_law_is_in_the_index(built: Built) -> None:
    index = BeautifulSoup(built.html("genindex"), "html.parser")
    (link,) = index.find_all("a", string="vjp (law)")
    assert link["href"] == "vjp.html#law-vjp"


def test_the_page_of_a_law_says_what_each_record_is_about(project: Project) -> None:
    write_record(peers(project), project.source / "peers.json")
    conf = project.source / "conf.py"
    conf.write_text(conf.read_text(encoding="utf-8").replace('"peers.json"', '"peers.json", "cuda.json"'))
    cuda = replace(report(project), provenance={"date": "2026-01-02", "device": "cuda (NVIDIA H200)"})
    write_record(cuda, project.source / "cuda.json")
    built = project.build()
    rows = BeautifulSoup(built.html("vjp"), "html.parser").select("table tr td:first-child .gradspec-detail")
    assert [row.get_text() for row in rows] == [
        "documented here",
        "published implementation",
        "documented here, on cuda (NVIDIA H200)",
    ]


def test_markdown_and_rest_make_the_same_doctree(project: Project) -> None:
    page(project)
    markdown = project.doctree("index").pformat()
    (project.source / "index.md").unlink()
    (project.source / "index.rst").write_text(REST, encoding="utf-8")
    page(project)
    rest = project.doctree("index").pformat()
    assert normal(rest) == normal(markdown)
    assert "formula" in rest


def test_a_difference_shows_what_the_record_of_the_peers_found(project: Project) -> None:
    write_record(peers(project), project.source / "peers.json")
    assert "✗ broken , measured on 2025-05-05" in section(page(project), "differences-from-published-implementations")


def test_a_difference_recorded_for_an_older_source_is_not_measured(project: Project) -> None:
    old = older(source_of(project.source / "demo.py"))
    write_record(replace(peers(project), sources={"spec pub.Scale": old}), project.source / "peers.json")
    shown = section(page(project), "differences-from-published-implementations")
    assert "○ not measured (recorded for an older source, on 2025-05-05)" in shown
    assert "broken" not in shown


def test_a_difference_without_a_record_is_not_measured(soup: BeautifulSoup) -> None:
    assert "○ not measured" in section(soup, "differences-from-published-implementations")


def test_the_pages_of_the_law_and_of_the_matrix(built: Built) -> None:
    law = BeautifulSoup(built.html("vjp"), "html.parser").get_text(" ")
    assert "Remedy:" in law
    assert "✓ holds" in law
    matrix = BeautifulSoup(built.html("matrix"), "html.parser")
    row = next(row for row in matrix.find_all("tr") if row.find("a", href="vjp.html#law-vjp"))
    assert row.get_text(" ").split() == ["vjp", "✓", "holds"]


def test_the_matrix_as_a_grid_shows_signs_and_a_legend(project: Project) -> None:
    matrix = project.source / "matrix.md"
    matrix.write_text(matrix.read_text(encoding="utf-8").replace("{gradspec-matrix}\n", "{gradspec-matrix}\n:grid:\n"))
    soup = BeautifulSoup(page_of(project, "matrix"), "html.parser")
    row = next(row for row in soup.find_all("tr") if row.find("a", href="vjp.html#law-vjp"))
    assert row.find(class_="gradspec-unseen").extract().get_text() == " holds"
    assert row.get_text(" ").split() == ["vjp", "✓"]
    legend = soup.find(class_="gradspec-legend").get_text()
    assert legend.startswith("✓ holds ")
    assert "✗ broken" in legend


def test_the_matrix_as_counts_adds_up_to_the_cells_of_the_record(project: Project) -> None:
    matrix = project.source / "matrix.md"
    matrix.write_text(
        matrix.read_text(encoding="utf-8").replace("{gradspec-matrix}\n", "{gradspec-matrix}\n:counts:\n")
    )
    soup = BeautifulSoup(page_of(project, "matrix"), "html.parser")
    head, *rows = ([cell.get_text(" ") for cell in row.find_all(["th", "td"])] for row in soup.table.find_all("tr"))
    records = [read_record(path) for path in sorted(project.source.rglob("*.json"))]
    expected = Counter(verdict.status.value for record in records for verdict in record.verdicts)
    assert head == ["Verdict", "Functions"]
    assert "✓ holds" in [name for name, _ in rows]
    assert sum(int(count.replace(",", "")) for _, count in rows) == sum(expected.values())
    assert dict(rows)["✓ holds"] == f"{expected['holds']:,}"


def page_of(project: Project, name: str) -> str:
    built = project.build()
    assert (built.returncode, built.warnings) == (0, [])
    return built.html(name)


def test_a_law_is_reproduced_by_the_command_above_the_table(soup: BeautifulSoup) -> None:
    assert "gradspec check demo:SCALE --law formula" in section(soup, "laws")


def test_each_verdict_has_a_button_that_copies_its_command(soup: BeautifulSoup) -> None:
    buttons = soup.select("table.gradspec-laws button.gradspec-copy")
    rows = [row for row in soup.select("table.gradspec-laws tbody tr") if len(row.find_all("td")) > 1]
    named = [row.select_one("td a code").get_text() for row in rows]
    assert len(rows) > 2
    assert [button["data-command"] for button in buttons] == [f"gradspec check demo:SCALE --law {law}" for law in named]
    assert all(button.has_attr("hidden") for button in buttons), "without a script it does nothing"


def test_a_record_of_another_device_or_torch_has_a_column_of_its_own(project: Project) -> None:
    conf = project.source / "conf.py"
    conf.write_text(conf.read_text(encoding="utf-8").replace('"peers.json"', '"peers.json", "cuda.json"'))
    cuda = replace(report(project), provenance={"date": "2026-01-02", "device": "cuda", "torch": "2.11.0+cu128"})
    broken = Finding(status=Status.BROKEN, message="it is off")
    verdicts = (verdict("vjp", "factor 2", broken), verdict("formula", "factor 2"))
    write_record(replace(cuda, verdicts=verdicts), project.source / "cuda.json")
    rows = page(project).select("table.gradspec-laws tr")
    cells = {row.find(["th", "td"]).get_text(" ").split()[0]: row.find_all(["th", "td"]) for row in rows}
    assert [cell.get_text() for cell in cells["Law"]] == ["Law", "cpu, torch 2.13.0", "cuda, torch 2.11.0"]
    here, there = (cell.get_text(" ") for cell in cells["vjp"][1:])
    assert "holds" in here
    assert "broken" in there
    assert "it is off" in there
    assert "not measured" in cells["wrong_call"][2].get_text()
    laws = BeautifulSoup((project.source.parent / "html" / "index.html").read_text("utf-8"), "html.parser").find(
        id="scale-laws"
    )
    assert laws.details is None, "what is broken on another device is folded away"
    assert "cuda, torch 2.11.0: ○ not measured 2, ✓ holds 1, ✗ broken 1." in section_text(laws)


def section_text(found: Tag) -> str:
    """Return the text of a part of a page on one line."""
    return " ".join(found.get_text().split())


def test_a_law_with_nothing_to_judge_is_not_counted_and_one_that_was_cut_off_is(project: Project) -> None:
    made = report(project)
    project.write(replace(made, verdicts=tuple(v for v in made.verdicts if v.law != "wrong_call")))
    shown = page(project)
    assert "The verdict of each law (3)" in section(shown, "laws")
    assert "cpu, torch 2.13.0: ✓ holds 3." in section(shown, "laws")
    matrix = BeautifulSoup(page_of(project, "matrix"), "html.parser")
    (row,) = [row for row in matrix.find_all("tr") if row.find("a", href="wrong_call.html#law-wrong_call")]
    assert row.get_text(" ").split() == ["wrong_call"]

    missed = (("scale", "wrong_call", "factor is text"),)
    project.write(replace(report(project), verdicts=made.verdicts[:3], missing=missed))
    laws = BeautifulSoup(project.build("-q").html(), "html.parser").find(id="scale-laws")
    assert "○ not measured 1" in section_text(laws)


def test_a_limit_of_torch_alarms_nobody(project: Project) -> None:
    made = report(project)
    limit = Finding(status=Status.BROKEN, rank=Rank.LIMIT, message="torch drops it")
    verdicts = [replace(v, finding=limit) if v.law == "formula" else v for v in made.verdicts]
    write_record(replace(made, verdicts=tuple(verdicts)), project.record)
    laws = page(project).find(id="scale-laws")

    assert laws.details is not None
    assert "△ limit of torch 1" in section_text(laws)


def test_verdicts_that_alarm_nobody_are_folded_behind_their_numbers(soup: BeautifulSoup) -> None:
    laws = soup.find(id="scale-laws")

    assert laws.details.summary.get_text() == "The verdict of each law (4)"
    assert len(laws.details.select("table.gradspec-laws")) == 1
    assert "cpu, torch 2.13.0: ✓ holds 4." in section_text(laws)


def test_wrong_calls_are_folded_after_the_third(project: Project) -> None:
    made = report(project)
    (one,) = made.of(law="wrong_call")
    more = tuple(replace(one, case=f"wrong call {i}") for i in range(4))
    write_record(replace(made, verdicts=(*made.verdicts, *more)), project.record)
    soup = page(project)
    errors = soup.find(id="scale-errors")
    assert errors.details.summary.get_text() == "2 more wrong calls"
    assert [len(table.find_all("tr")) for table in errors.find_all("table")] == [4, 3]
    assert errors.details.find("table") is errors.find_all("table")[1]
    assert errors.details.get("open") is None


def test_three_wrong_calls_are_not_folded(soup: BeautifulSoup) -> None:
    assert soup.find(id="scale-errors").details is None


def peers(project: Project) -> Report:
    bad = Finding(status=Status.BROKEN, message="vmap is refused")
    return Report(
        provenance={"date": "2025-05-05", "packages": {"pub": "1.0"}},
        sheets={"pub.Scale": SHEET},
        laws={"vjp": LAW | {"family": "derivative"}},
        sources={},
        verdicts=(verdict("vjp", "factor 2", bad, spec="pub.Scale"),),
    )


@pytest.mark.parametrize(
    ("url", "linked"),
    [
        ("https://example.org/paper", True),
        ("mailto:a@example.org", True),
        ("../papers/one.pdf", True),
        ("javascript:alert(1)", False),
        ("java\nscript:alert(1)", False),
        (" \x01JavaScript:alert(1)", False),
        ("data:text/html,<script>", False),
        ("vbscript:x", False),
    ],
)
def test_a_reference_links_what_is_safe_to_open(project: Project, url: str, linked: bool) -> None:
    made = report(project)
    sheet = {**made.sheets["scale"], "references": [{"text": "A paper, 2015.", "url": url}]}
    project.write(replace(made, sheets={"scale": sheet}))
    soup = BeautifulSoup(project.build().html(), "html.parser")
    assert "A paper, 2015." in soup.get_text()
    assert bool([a for a in soup.select("a") if a.get_text() == "A paper, 2015."]) is linked


def test_what_steers_a_readers_eye_is_shown_as_an_escape(project: Project) -> None:
    made = report(project)
    project.write(replace(made, sheets={"scale": {**made.sheets["scale"], "summary": "Reads \u202esdrawkcab\u202c."}}))
    text = project.build().html()
    assert "\u202e" not in text
    assert r"Reads \u202esdrawkcab\u202c." in text
