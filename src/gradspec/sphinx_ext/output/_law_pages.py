"""The page of each law, written before Sphinx looks for pages: `gradspec_law_pages` names their folder.

A page is written only if its text differs, so a second build reads none, and it goes with its law.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from gradspec.sphinx_ext._config import Options, options
from gradspec.sphinx_ext._warnings import GradspecWarning, warn
from gradspec.sphinx_ext.domain._domain import domain_of

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

#: What the last line of each such page says. A page without it is the author's, and is not touched.
MARK = "Written by gradspec_law_pages: an edit here is lost with the next build."
#: A page in each language that a project may write its pages in, by Sphinx's names for these.
PAGES = {
    "restructuredtext": "{name}\n{line}\n\n.. gradspec-law:: {name}\n\n.. {mark}\n",
    "markdown": "# {name}\n\n```{{gradspec-law}} {name}\n```\n\n% {mark}\n",
}


def setup(app: Sphinx) -> None:
    """Write the pages once the records are read (500), and before Sphinx looks for pages."""
    app.connect("builder-inited", _write, priority=600)


def law_pages(env: BuildEnvironment) -> list[str]:
    """Return the names of the pages of laws, in the order in which the laws run."""
    folder = options(env.config).law_pages
    laws = domain_of(env).records.laws
    names = list(laws) if laws else sorted(page.stem for page in _written(Path(env.srcdir, folder)))
    return [str(PurePosixPath(folder, name)) for name in names]


def _write(app: Sphinx) -> None:
    chosen, laws = options(app.config).law_pages, domain_of(app.env).records.laws
    if not chosen or not laws:  # without a record nobody knows the laws: their pages stay
        return
    folder = Path(app.srcdir, chosen)
    if not folder.resolve().is_relative_to(Path(app.srcdir).resolve()):
        warn(GradspecWarning.CONFIG, f"gradspec_law_pages is {chosen!r}: name a folder within the source of the pages")
        app.config.gradspec_law_pages = Options.law_pages
        return
    folder.mkdir(parents=True, exist_ok=True)
    suffix, text = _form(app)
    written = {page.name: page for page in _written(folder)}
    for name in laws:
        page = folder / f"{name}{suffix}"
        by_hand = any((folder / f"{name}{other}").exists() for other in app.config.source_suffix)
        wanted = text.format(name=name, line="=" * len(name), mark=MARK)
        if page.name in written:
            if written.pop(page.name).read_text(encoding="utf-8") != wanted:
                page.write_text(wanted, encoding="utf-8")
        elif not by_hand:
            page.write_text(wanted, encoding="utf-8")
    for page in written.values():
        page.unlink()


def _form(app: Sphinx) -> tuple[str, str]:
    """Return the suffix and the text of a page: in the language of the first page of the project."""
    for suffix, language in app.config.source_suffix.items():
        if language in PAGES and Path(app.srcdir, f"{app.config.root_doc}{suffix}").is_file():
            return suffix, PAGES[language]
    return ".rst", PAGES["restructuredtext"]


def _written(folder: Path) -> Iterator[Path]:
    """Yield the pages that an earlier build wrote."""
    for page in sorted(folder.glob("*.*")):
        if page.is_file() and page.read_text(encoding="utf-8", errors="replace").rstrip().endswith(MARK):
            yield page
