"""The picture of a text graph: every call, leaf and arrow once, nothing of the data read as markup."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from bs4 import BeautifulSoup

from gradspec.sphinx_ext.directives._graph_svg import svg
from gradspec.text import Variable
from gradspec.text._graph._picture import graph
from gradspec.text.ops import split
from sphinx_ext.handmade import Project

SVG = "{http://www.w3.org/2000/svg}"


def drawn(variable: Variable) -> ET.Element:
    boxes, arrows = graph(variable)
    return ET.fromstring(svg({box.name: box.label for box in boxes}, arrows, "a <graph> & more"))


def test_every_box_and_arrow_is_drawn_once() -> None:
    x = Variable("a b", role="letters", requires_grad=True)
    first, second = split(x)
    picture = drawn(first + second)

    labels = [(text.text or "").partition(":")[0] for text in picture.iter(f"{SVG}text")]
    assert sorted(labels) == ["AddBackward", "SplitBackward", "letters 'a b'"]
    assert len(list(picture.iter(f"{SVG}rect"))) == 3
    assert len(list(picture.iter(f"{SVG}line"))) == 3


def test_data_is_no_markup() -> None:
    picture = drawn(Variable("</text><script>alert(1)</script>", role="x", requires_grad=True) + "!")
    texts = [text.text for text in picture.iter(f"{SVG}text")]

    assert list(picture.iter(f"{SVG}script")) == []
    assert any("</text><script>alert(1)</script>" in (text or "") for text in texts)
    assert picture.findtext(f"{SVG}title") == "a <graph> & more"


def test_a_leaf_stands_above_what_it_leads_to() -> None:
    x = Variable("a", role="x", requires_grad=True)
    picture = drawn(x + "b" + "c")
    heights = [float(rect.attrib["y"]) for rect in picture.iter(f"{SVG}rect")]

    assert len(set(heights)) == 3
    for line in picture.iter(f"{SVG}line"):
        assert float(line.attrib["y1"]) < float(line.attrib["y2"])


def test_a_box_says_what_it_is_and_whether_it_is_a_leaf() -> None:
    boxes, arrows = graph(Variable('say "hi"', role="x", requires_grad=True) + "!")

    assert [(box.name, box.label, box.is_leaf) for box in boxes] == [
        ("n0", "AddBackward: x", False),
        ("n1", "x 'say \"hi\"'", True),
    ]
    assert arrows == [("n1", "n0")]


GRAPH = """

```{gradspec-graph} top
from gradspec.text import Variable

top = Variable("<b>bold</b>", role="prompt", requires_grad=True) + "!"
```
"""


def test_a_page_shows_the_code_the_picture_the_tree_and_the_flowchart(project: Project) -> None:
    page = project.source / "index.md"
    page.write_text(page.read_text(encoding="utf-8") + GRAPH, encoding="utf-8")
    built = project.build()
    soup = BeautifulSoup(built.html(), "html.parser")

    assert (built.returncode, built.warnings) == (0, [])
    picture, details = soup.find("svg", class_="gradspec-graph"), soup.find("details", class_=None)
    assert picture is not None
    assert details is not None
    assert len(picture.find_all("rect")) == 2
    assert soup.find("b", string="bold") is None
    assert "AddBackward: prompt\n  prompt '<b>bold</b>'" in soup.get_text()
    assert "n1 --> n0" in details.get_text()


def test_a_graph_that_cannot_be_drawn_fails_the_build_and_goes_on_failing(project: Project) -> None:
    page = project.source / "index.md"
    page.write_text(page.read_text(encoding="utf-8") + GRAPH.replace("} top", "} missing"), encoding="utf-8")
    for _ in range(2):
        built = project.build()

        assert built.returncode != 0
        assert any("the graph of missing cannot be drawn: NameError" in line for line in built.warnings)


def test_a_graph_that_ends_python_is_a_warning_too(project: Project) -> None:
    page = project.source / "index.md"
    page.write_text(page.read_text(encoding="utf-8") + GRAPH.replace("} top", "} exit(3)"), encoding="utf-8")
    built = project.build()

    assert any("the graph of exit(3) cannot be drawn: SystemExit" in line for line in built.warnings)
