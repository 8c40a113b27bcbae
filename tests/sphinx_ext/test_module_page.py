"""The page of a module: rendered as that of a function is, with sections and laws of its own kind."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from bs4 import BeautifulSoup

from gradspec.law import Finding, Status
from gradspec.report import Report
from sphinx_ext.handmade import LAW, SHEET, Built, Project, copied, normal, report, verdict

PAGE = """\
# Scale

````{gradspec-module} scale
```{eval-rst}
.. autofunction:: demo.scale
.. automethod:: demo.Scale.apply
```
````

```{toctree}
vjp
matrix
```
"""
DOCSTRING = """Scale a gradient by :math:`f`.

    The output is :math:`y = x`, and

    .. math:: z = f y

    so that forward is left alone; see :func:`demo.scale`:

    * once,
    * and again.

    Args:
        x: what passes.

    Shape:
        numbers of any shape to numbers
        of the same.

    Example:"""
METHOD = '''"""Return x.

        Example:
            >>> Scale.apply(7.0)
            7.0
        """'''
NET = {key: value for key, value in SHEET.items() if key not in ("effects", "tex", "wrt")} | {
    "kind": "module",
    "inputs": [
        {"name": "images", "type": "Tensor", "shape": "(B, 3)", "dtype": "", "gradient": True, "text": "The batch."}
    ],
    "returns": "The logits, of shape (B, 5).",
    "frozen": ["bank"],
}
STATE = Finding(status=Status.HOLDS, details={"keys": ["a.weight", "a.bias", "b.weight"], "dropped": ["c.weight"]})


def module_report(project: Project) -> Report:
    """Return the record of the demo as if it were a module: one law of its own, and one of functions."""
    made = report(project)
    own = LAW | {"family": "modules", "kinds": ["module"]}
    laws = {"state_dict": own, "vjp": LAW | {"family": "derivative", "kinds": ["function"]}}
    kept = tuple(v for v in made.verdicts if v.law in ("wrong_call", "examples"))
    both = {name: made.laws[name] | {"kinds": ["function", "module"]} for name in ("wrong_call", "examples")}
    return replace(
        made,
        sheets={"scale": NET},
        laws={**laws, **both},
        verdicts=(*kept, verdict("state_dict", "three layers", STATE)),
    )


def prepared(project: Project) -> Project:
    demo = project.source / "demo.py"
    text = demo.read_text(encoding="utf-8").replace("Scale a gradient.\n\n    Example:", DOCSTRING)
    demo.write_text(text.replace('"""Return x."""', METHOD), encoding="utf-8")
    project.write(module_report(project))
    (project.source / "index.md").write_text(PAGE, encoding="utf-8")
    for name in ("state_dict", "wrong_call", "examples"):
        page = f":orphan:\n\n{name}\n{'=' * len(name)}\n\n.. gradspec-law:: {name}\n"
        (project.source / f"{name}.rst").write_text(page, encoding="utf-8")
    (project.source / "formula.rst").unlink()
    return project


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    made = prepared(copied("test-function", tmp_path_factory.mktemp("module"))).build()
    assert (made.returncode, made.warnings) == (0, [])
    return made


@pytest.fixture(scope="module")
def soup(built: Built) -> BeautifulSoup:
    return BeautifulSoup(built.html(), "html.parser")


def section(soup: BeautifulSoup, title: str) -> str:
    found = soup.find(id=f"scale-{title}")
    assert found is not None
    return " ".join(found.get_text(" ").split())


def test_the_sections_stand_in_the_order_of_a_function_page(soup: BeautifulSoup) -> None:
    titles = [heading.get_text().rstrip("¶") for heading in soup.find_all("h2")]
    assert titles == [
        "Examples",
        "What it computes",
        "Arguments",
        "Call",
        "State",
        "Errors",
        "Laws",
        "Differences from published implementations",
        "Members",
        "References",
        "Provenance",
    ]


def test_the_signature_is_that_of_the_constructor(soup: BeautifulSoup) -> None:
    signature = soup.find("dt", id="demo.Scale")
    assert signature is not None
    shown = signature.get_text().replace("[source]", "").rstrip("¶")
    assert shown.strip().startswith("demo.Scale(x:")
    assert ".apply(" not in shown


def test_the_docstring_is_shown_once_up_to_its_first_section(soup: BeautifulSoup) -> None:
    signature = soup.find("dt", id="demo.Scale")
    assert signature is not None
    lead = signature.find_next_sibling("dd")
    assert lead is not None
    assert lead.get_text().startswith("Scale a gradient by ")
    assert "Scales the gradient" not in soup.get_text(), "the summary of the spec, beside the docstring"
    shown = soup.find(id="scale-what-it-computes")
    assert shown is not None
    assert len(shown.select(".katex-display")) == 1
    assert [item.get_text().strip() for item in shown.find_all("li")] == ["once,", "and again."]
    assert shown.find("a", href="#demo.scale") is not None
    assert "what passes" not in shown.get_text()


def test_an_example_of_a_method_stands_among_those_of_the_class_alone(soup: BeautifulSoup) -> None:
    assert "( 2.0 , 3.0 )" in section(soup, "examples")
    assert "Return x." in section(soup, "members")
    assert ">>>" not in section(soup, "members")


def test_what_comes_out_is_the_shape_of_the_docstring_where_the_spec_does_not_say_it(project: Project) -> None:
    made = module_report(prepared(project))
    project.write(replace(made, sheets={"scale": NET | {"returns": ""}}))
    built = project.build()
    assert (built.returncode, built.warnings) == (0, [])
    shown = section(BeautifulSoup(built.html(), "html.parser"), "call")
    assert "Numbers of any shape to numbers of the same." in shown


def test_without_a_docstring_the_summary_of_the_spec_stands_there(project: Project) -> None:
    prepared(project)
    demo = project.source / "demo.py"
    demo.write_text(re.sub(r'"""Scale a gradient.*?"""', "", demo.read_text("utf-8"), flags=re.DOTALL), "utf-8")
    project.write(module_report(project))
    built = project.build()
    assert (built.returncode, built.warnings) == (0, [])
    page = BeautifulSoup(built.html(), "html.parser")
    assert "Scales the gradient that flows back through it." in page.get_text()
    assert page.find(id="scale-what-it-computes") is None


def test_the_docstring_is_the_same_on_a_page_in_rest(project: Project) -> None:
    prepared(project)
    (project.source / "twin.md").write_text("# Scale\n\n```{gradspec-module} scale\n```\n", encoding="utf-8")
    (project.source / "other.rst").write_text("Scale\n=====\n\n.. gradspec-module:: scale\n", encoding="utf-8")
    (project.source / "index.md").write_text("# Start\n\n{py:func}`demo.scale`\n", encoding="utf-8")
    project.build("-b", "dummy", "-D", "exclude_patterns=")
    markdown, rest = (project.doctree(page).pformat() for page in ("twin", "other"))
    assert "<list_item>" in markdown
    assert normal(markdown) == normal(rest.replace('="other"', '="twin"'))


def test_the_call_says_what_goes_in_what_comes_out_and_what_is_not_trained(soup: BeautifulSoup) -> None:
    shown = section(soup, "call")
    assert "images Tensor (B, 3) yes The batch." in shown
    assert "Dtype" not in shown, "a column without an entry"
    assert "The logits, of shape (B, 5)." in shown
    assert "of any shape to" not in shown
    assert "Not trained: bank ." in shown


def test_the_state_is_what_the_law_found(soup: BeautifulSoup) -> None:
    assert "three layers a.weight … 3 in all … b.weight c.weight" in section(soup, "state")


def test_the_laws_of_another_kind_are_not_on_the_page(soup: BeautifulSoup, built: Built) -> None:
    assert "state_dict" in section(soup, "laws")
    assert "vjp" not in section(soup, "laws")
    matrix = BeautifulSoup(built.html("matrix"), "html.parser").get_text(" ")
    assert "state_dict" in matrix
    assert "vjp" not in matrix.partition("Measured on")[0].partition("Law")[2]


def test_a_module_is_not_rendered_as_a_function(project: Project) -> None:
    prepared(project)
    (project.source / "index.md").write_text(PAGE.replace("gradspec-module", "gradspec-function"), encoding="utf-8")
    built = project.build("-b", "dummy")
    assert built.returncode == 1
    assert any("write gradspec-module:: scale for 'scale'" in w for w in built.warnings)


def test_a_spec_that_is_written_by_its_path_is_found_by_its_name(project: Project) -> None:
    prepared(project)
    (project.source / "index.md").write_text(PAGE.replace("} scale\n", "} demo:SCALE\n"), encoding="utf-8")
    built = project.build("-b", "dummy")
    assert built.returncode == 1
    assert any("write gradspec-module:: scale for 'demo:SCALE'" in w for w in built.warnings)


def test_a_module_without_a_page_is_named_with_its_directive(project: Project) -> None:
    made = module_report(prepared(project))
    project.write(replace(made, sheets={**made.sheets, "other": NET}))
    built = project.build("-b", "dummy")
    (line,) = [warning for warning in built.warnings if "[gradspec.undocumented]" in warning]
    assert "module 'other'" in line
    assert "gradspec-module:: other" in line
