"""The Markdown twin of a page says what the page says, `llms.txt` lists every twin, and a head describes its page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from docutils import nodes
from markdown_it import MarkdownIt

from gradspec._one_line import visible
from gradspec.sphinx_ext.output._markdown_inline import OLDER, inline
from sphinx_ext.handmade import Built, copied

if TYPE_CHECKING:
    from pathlib import Path

TWIN = """\
# A page with \\<everything>

Words with *stress*, **weight**, `a | b`, $x^2$, a \\* star and a [link](https://example.org/); see \
[Alone](../alone.html.md) and [Parts](#place).

## Parts

| Name | Value |
| --- | --- |
| `a \\| b` | one; two |
| c | $y$ |

````python
print("```")
````

$$
y = \\frac{1}{x}
$$

1. first

2. second

   - nested
   - list

> **Note**
>
> Mind it.

Figure: A line

Figure: From 0 to 1 & back

### `f(x: int) -> int`

Does it.

- **Parameters**

  `x` \N{EN DASH} what
"""
LIST = """\
# Twins

> What these pages are about.

## Guide

- [Guide](guide/index.html.md)
- [A page with \\<everything>](guide/page.html.md): Words with stress, weight, a | b, x^2, a \\* star and a link; see \
Alone and Parts.

## More

- [Alone](alone.html.md): A sentence of seven words about one thing.
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    made = copied("test-twins", tmp_path_factory.mktemp("twins")).build("-j", "2")
    assert made.returncode == 0, made.warnings
    return made


def twin(built: Built, page: str) -> str:
    return (built.folder / f"{page}.html.md").read_text(encoding="utf-8")


def descriptions(built: Built, page: str) -> list[str]:
    return re.findall(r'<meta [^>]*name="description"[^>]*>', built.html(page))


def test_a_twin_says_what_its_page_says(built: Built) -> None:
    assert twin(built, "guide/page") == TWIN


def test_a_table_of_contents_links_twins(built: Built) -> None:
    assert "- [Guide](guide/index.html.md)\n  - [A page with" in re.sub(r"\n+", "\n", twin(built, "index"))


def test_a_page_names_its_twin(built: Built) -> None:
    link = '<link rel="alternate" type="text/markdown" title="Markdown" href="page.html.md" />'
    assert link in built.html("guide/page")
    assert "text/markdown" not in built.html("search")


def test_the_list_has_every_twin_in_order(built: Built) -> None:
    assert (built.folder / "llms.txt").read_text(encoding="utf-8") == LIST


def test_a_description_is_the_first_words_or_the_authors(built: Built) -> None:
    assert descriptions(built, "alone") == [
        '<meta name="description" content="A sentence of seven words about one thing." />'
    ]
    (said,) = descriptions(built, "guide/page")
    assert 'content="Said by the author."' in said
    assert len(descriptions(built, "genindex")) == 1


def test_nothing_is_written_unless_it_is_asked_for(tmp_path_factory: pytest.TempPathFactory) -> None:
    made = copied("test-twins", tmp_path_factory.mktemp("plain")).build(
        "-D", "gradspec_llms=0", "-D", "gradspec_descriptions=0"
    )
    assert made.returncode == 0, made.warnings
    assert [path.name for path in made.folder.rglob("*") if path.name.endswith((".html.md", "llms.txt"))] == []
    assert [len(descriptions(made, page)) for page in ("alone", "guide/page")] == [0, 1]


def test_an_incremental_build_keeps_the_list(tmp_path_factory: pytest.TempPathFactory) -> None:
    project = copied("test-twins", tmp_path_factory.mktemp("again"))
    assert project.build().returncode == 0
    (project.source / "alone.md").write_text("# Alone\n\nOther words than those before.\n", encoding="utf-8")
    again = project.build()
    assert "Other words" in twin(again, "alone")
    text = (again.folder / "llms.txt").read_text(encoding="utf-8")
    assert text == LIST.replace("A sentence of seven words about one thing.", "Other words than those before.")


def test_a_page_that_sphinx_makes_itself_has_no_twin_to_link(tmp_path: Path) -> None:
    project = copied("test-twins", tmp_path)
    with (project.source / "alone.md").open("a", encoding="utf-8") as page:
        page.write("\nSee the {ref}`index <genindex>`.\n")
    built = project.build()
    assert (built.returncode, built.warnings) == (0, [])
    twin = (built.folder / "alone.html.md").read_text(encoding="utf-8")
    assert "See the [index](genindex.html)." in twin


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("a_b_ [link](javascript:alert(1)) $x$ ~~gone~~", r"a\_b\_ \[link\](javascript:alert(1)) \$x\$ \~\~gone\~\~"),
        ("&lt;script> <b>", r"\&lt;script> \<b>"),
        ("# no heading", r"\# no heading"),
        ("1. no list", r"1\. no list"),
        ("- no list", r"\- no list"),
        ("R&D, 1.5 and 2 - 1", "R&D, 1.5 and 2 - 1"),
        ("safe\u202etxt.exe", r"safe\\u202etxt.exe"),
    ],
)
def test_words_of_a_twin_are_words(words: str, shown: str) -> None:
    assert inline([nodes.Text(words)], str) == shown
    opened, line, closed = MarkdownIt().parse(shown)
    assert (opened.type, closed.type) == ("paragraph_open", "paragraph_close")
    assert "".join(part.content for part in line.children or ()) == visible(words)


def test_an_address_stays_one_address() -> None:
    assert inline([nodes.reference("", "it", refuri="a (b).html")], str) == "[it](a%20%28b%29.html)"


@pytest.mark.parametrize("address", ["javascript:alert(1)", "java\tscript:alert(1)", " JavaScript:x", "data:text/html"])
def test_an_address_that_can_run_code_is_no_link(address: str) -> None:
    assert inline([nodes.reference("", "it", refuri=address)], str) == "it"


def test_what_a_reader_sees_on_hovering_is_said() -> None:
    said = "recorded for an older source, on 2026-01-02"
    word = nodes.abbreviation("", "VJP", explanation="vector-Jacobian product")
    assert inline([word, nodes.Text(" of 2")], str) == "VJP (vector-Jacobian product) of 2"
    first, second = (nodes.abbreviation("", text, explanation=said, classes=[OLDER]) for text in ("12.5%", "2"))
    assert inline([first, nodes.Text(" of "), second, nodes.Text(".")], str) == rf"12.5%\* of 2\*. (\*: {said})"


def test_names_and_descriptions_of_the_list_are_words(tmp_path: Path) -> None:
    project = copied("test-twins", tmp_path)
    title = "[Click](javascript:alert(1)) <img src=x> me"
    hostile = f"{title}\n{'=' * len(title)}\n\nA description with [a link](http://evil) in it.\n"
    (project.source / "guide" / "page.rst").write_text(hostile, encoding="utf-8")
    made = project.build()
    listed = (made.folder / "llms.txt").read_text(encoding="utf-8")
    parts = [part for line in MarkdownIt().parse(listed) for part in line.children or ()]
    links = [part.attrs["href"] for part in parts if part.type == "link_open"]
    assert links == ["guide/index.html.md", "guide/page.html.md", "alone.html.md"]
    assert not [part for part in parts if part.type == "html_inline"]
