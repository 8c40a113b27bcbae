"""Directives that installed packages announce: each is there, imported when a page has it; a broken one warns once."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from gradspec.sphinx_ext._announced import GROUP
from sphinx_ext.handmade import Built, Project, copied

THEIRS = """
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

class Shout(SphinxDirective):
    required_arguments = 1
    option_spec = {"times": int}
    has_content = True

    def run(self):
        return [nodes.paragraph("", self.arguments[0].upper() * self.options.get("times", 1) + " ".join(self.content))]

NOT_ONE = 3
"""
POINTS = """[gradspec.directives]
shout = theirs:Shout
torn = theirs:Gone
number = theirs:NOT_ONE
unasked = missing_module:Directive
"""
PAGE = """# Page

```{shout} ab
:times: 2
 and more
```

```{torn} an argument
:option: of it
content
```

```{number}
```
"""
LOADED = """
import sys
from pathlib import Path

def setup(app):
    app.connect("build-finished", lambda app, error: (Path(app.outdir) / "loaded").write_text("\\n".join(sys.modules)))
"""


def test_the_reference_names_the_group() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "sphinx.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert list(tomllib.loads(table)["project"]["entry-points"]) == [GROUP]


def prepared(folder: Path, page: str) -> Project:
    project = copied("test-function", folder)
    (project.source / "theirs.py").write_text(THEIRS, encoding="utf-8")
    info = project.source / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(POINTS, encoding="utf-8")
    conf = project.source / "conf.py"
    path = f"import sys\nsys.path.insert(0, {str(project.source)!r})\n"
    conf.write_text(path + conf.read_text(encoding="utf-8") + LOADED, encoding="utf-8")
    (project.source / "theirs.md").write_text(page, encoding="utf-8")
    (project.source / "index.md").write_text("# Index\n\n```{toctree}\n:glob:\n*\n```\n", encoding="utf-8")
    return project


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return prepared(tmp_path_factory.mktemp("announced"), PAGE).build()


def loaded(built: Built) -> set[str]:
    return set((built.folder / "loaded").read_text(encoding="utf-8").split())


def test_an_announced_directive_takes_its_arguments_and_options(built: Built) -> None:
    assert "ABAB and more" in built.html("theirs")


def test_a_broken_entry_point_is_one_warning_that_names_it_and_the_rest_works(built: Built) -> None:
    torn, number = (line for line in built.warnings if "gradspec.directives" in line)
    assert "entry point 'theirs:Gone' of gradspec.directives raised AttributeError" in torn
    assert torn.endswith("torn shows nothing [gradspec.import]")
    assert "entry point 'theirs:NOT_ONE' of gradspec.directives raised TypeError: it is 3" in number
    assert "ABAB and more" in built.html("theirs")


def test_what_no_page_has_is_not_imported(built: Built, tmp_path: Path) -> None:
    assert [name for name in loaded(built) if name.startswith("gradspec.text")] == []
    assert "theirs" in loaded(built)
    graph = '```{gradspec-graph} x\nfrom gradspec.text import Variable\nx = Variable("a", role="word")\n```\n'
    assert "gradspec.text" in loaded(prepared(tmp_path, f"# Page\n\n{graph}").build())
