"""No code block stands on a page that nobody runs: each is executed, rendered by the build, or read by a named test."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from pages.blocks import DOCS, ROOT, Block, all_blocks, read_blocks
from pages.commands import UnrunError, look_up

BLOCKS = all_blocks()
#: What the build makes of something that is held to its source; autodoc shows docstrings, whose examples run.
DIRECTIVES = {"{eval-rst}", "{toctree}", "{math}", "{literalinclude}", "{csv-table}"}
#: `gradspec-*`: rendered from records and specs.
OWN = re.compile(r"\{gradspec-[\w-]+\}")
#: Blocks that another test reads: page and kind, and that test.
ELSEWHERE = {
    **{("how-to/add-a-kind.md", kind): "tests/engine/test_new_kind.py" for kind in ("python", "toml", "sh", "")},
    ("how-to/audit-a-function.md", "python"): "tests/test_how_to.py",
    ("how-to/audit-a-function.md", "sh"): "tests/lab/audits/test_audits.py",
    ("how-to/verify-in-ci.md", "sh"): "tests/ci/test_ci.py",
    ("how-to/verify-in-ci.md", "text"): "tests/ci/test_ci.py",
    ("how-to/verify-in-pytest.md", "python"): "tests/test_how_to.py",
    ("how-to/verify-in-pytest.md", "sh"): "tests/test_how_to.py",
    ("how-to/verify-in-pytest.md", "toml"): "tests/pages/test_blocks.py",
    ("how-to/local-language-model.md", "python"): "tests/text/lm/test_docs.py",
    ("how-to/local-language-model.md", "sh"): "tests/text/lm/test_docs.py",
    ("how-to/move-from-textgrad.md", "python"): "tests/text/textgrad/test_page.py",
    ("how-to/move-from-textgrad.md", "text"): "tests/text/textgrad/test_page.py",
    **{("how-to/which-route.md", kind): "tests/pages/test_which_route.py" for kind in ("python", "cpp", "sh")},
    ("reference/sphinx.md", "toml"): "tests/sphinx_ext/test_announced.py",
    ("text/models.md", "python"): "tests/text/lm/test_docs.py",
}


def complaint(block: Block) -> str:
    """Return what is wrong with a block that nobody runs; empty if somebody does."""
    if (block.page, block.kind) in ELSEWHERE:
        return ""
    if block.kind in DIRECTIVES or OWN.fullmatch(block.kind):
        return _included(block) if block.kind == "{literalinclude}" else ""
    if block.kind == "python":
        return ""  # test_pages.py runs it
    if block.kind == "sh":
        try:
            for line in block.text.splitlines():
                look_up(line)
        except UnrunError as error:
            return f"{block.where}: {error}"
        return ""
    named = f"of the kind {block.kind!r}" if block.kind else "without a kind"
    return f"{block.where}: nobody runs a block {named}: make it python, sh or a directive that renders it"


def _included(block: Block) -> str:
    file = (DOCS / block.page).parent.joinpath(block.argument).resolve()
    schema = DOCS / "reference" / "report.schema.json"  # tests/engine/test_report.py holds a report to it
    homes = (ROOT / "src", DOCS / "examples", ROOT / "tests", schema)
    good = file.is_file() and any(file.is_relative_to(home) for home in homes)
    return "" if good else f"{block.where}: {block.argument} is not in src, tests or docs/examples, where code is run"


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.where)
def test_somebody_runs_every_block(block: Block) -> None:
    assert complaint(block) == ""


@pytest.mark.parametrize(("place", "test"), ELSEWHERE.items(), ids=lambda value: "-".join(value) if value else "")
def test_the_test_that_reads_a_block_names_its_page(place: tuple[str, str], test: str) -> None:
    page, kind = place
    assert page.rpartition("/")[2] in (ROOT / test).read_text(encoding="utf-8")
    assert any((block.page, block.kind) == (page, kind) for block in BLOCKS), "the exception is no longer needed"


def test_the_entry_points_of_a_page_are_those_that_are_read() -> None:
    (block,) = (b for b in BLOCKS if (b.page, b.kind) == ("how-to/verify-in-pytest.md", "toml"))
    groups = tomllib.loads(block.text)["project"]["entry-points"]
    files = (ROOT / "src" / "gradspec" / "_registry").glob("*.py")
    registry = "".join(path.read_text(encoding="utf-8") for path in files)
    assert len(groups) == 2
    assert all(f'group="{group}"' in registry for group in groups)


def loose(text: str) -> list[str]:
    """Return the code of a page that stands in no fence: indented blocks, and transcripts."""
    fenced = {at for block in read_blocks(text, "") for at in range(block.line, block.end + 1)}
    found = [token.content for token in MarkdownIt().parse(text) if token.type == "code_block"]
    lines = enumerate(text.splitlines(), 1)
    return found + [line for at, line in lines if at not in fenced and line.lstrip().startswith((">>>", "$ "))]


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.md")), ids=lambda path: path.relative_to(DOCS).as_posix())
def test_there_is_no_code_outside_fences(path: Path) -> None:
    assert loose(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("text", ["Run:\n\n    make docs\n", "So:\n>>> 2 + 2\n5\n", "- a\n\n      1 / 0\n"])
def test_code_outside_fences_is_found(text: str) -> None:
    assert len(loose(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "```pycon\n>>> 2 + 2\n5\n```",
        "```\n>>> 2 + 2\n5\n```",
        "```{code-block} python\n1 / 0\n```",
        "~~~console\n$ rm -r build\n~~~",
        ":::text\ngot 3\n:::",
        "```sh\nmake docs\n```",
        "```sh\nnox -s nothing\n```",
        "```sh\ngradspec verify gradspec.functions\n```",
        "```sh\ngradspec check gradspec.functions --profil cuda\n```",
        '```sh\npython -m pip install "gradspec[gpu]"\n```',
        "```sh\npython docs/examples/no_such.py\n```",
        "- a list\n\n  ```yaml\n  a: 1\n  ```",
        "```{literalinclude} ../README.md\n```",
    ],
)
def test_a_block_that_nobody_runs_is_found(text: str) -> None:
    (block,) = read_blocks(text, "page.md")
    assert complaint(block).startswith("page.md:")


def test_a_fence_that_is_never_closed_is_found() -> None:
    with pytest.raises(ValueError, match=r"page\.md:3: the fence is never closed"):
        list(read_blocks("a\n\n```python\n1 + 1\n", "page.md"))


def test_a_longer_fence_holds_a_shorter_one() -> None:
    (block,) = read_blocks("````{gradspec-function} f\n```{eval-rst}\n```\n````\n", "page.md")
    assert (block.kind, block.argument, block.text) == ("{gradspec-function}", "f", "```{eval-rst}\n```\n")


def test_the_pages_of_the_laboratory_show_directives_that_exist() -> None:
    page = (ROOT / "src/gradspec_lab/sphinx/README.md").read_text(encoding="utf-8")
    text = "".join(b.text for b in read_blocks(page, "README.md") if not b.kind)
    used = re.findall(r"^```(\S+)|(\{gradspec:\w+\})", text, re.MULTILINE)
    named = [one for pair in used for one in pair if one]
    assert named == ["{gradspec-curves}", "{gradspec:number}", "{gradspec-kill-matrix}"]
