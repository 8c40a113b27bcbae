"""Output for programs: a Markdown twin beside each page, and an `llms.txt` with a link to every twin.

The form is that of https://llmstxt.org: a twin has the address of its page with `.md` behind it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx import addnodes

from gradspec.sphinx_ext._config import options
from gradspec.sphinx_ext.output._markdown import markdown
from gradspec.sphinx_ext.output._markdown_inline import escaped
from gradspec.sphinx_ext.output._site import is_site
from gradspec.sphinx_ext.output._summary import noted

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment


def setup(app: Sphinx) -> None:
    """Write a twin with each page, and the list of them at the end."""
    app.connect("html-page-context", _write_twin)
    app.connect("build-finished", _write_list)


def twin_address(address: str, suffix: str) -> str:
    """Return the address of the twin of an internal page; any other address as it is.

    An anchor is left out: headings are what a twin has.
    """
    if re.match(r"[a-z][a-z0-9+.-]*:|//", address):
        return address
    page, _, anchor = address.partition("#")
    if not page:
        return f"#{anchor}"
    return f"{page}.md" if page.endswith(suffix) else address


def _is_on(app: Sphinx) -> bool:
    return options(app.config).llms and is_site(app.builder) and not app.builder.name.startswith("singlehtml")


def _write_twin(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    if doctree is None or not _is_on(app):
        return
    suffix = app.builder.out_suffix  # type: ignore[attr-defined]
    path = Path(app.outdir) / f"{pagename}{suffix}.md"
    path.parent.mkdir(parents=True, exist_ok=True)

    def link(address: str) -> str:
        # Sphinx makes the indices and the pages of source code itself: they have no twin.
        target = posixpath.normpath(posixpath.join(posixpath.dirname(pagename), address.partition("#")[0]))
        made = target.endswith(suffix) and target.removesuffix(suffix) not in app.env.all_docs
        return address if made else twin_address(address, suffix)

    path.write_text(markdown(doctree, link), encoding="utf-8")
    alternate = f'<link rel="alternate" type="text/markdown" title="Markdown" href="{path.name}" />'
    context["metatags"] = f"{context.get('metatags', '')}\n{alternate}"


def _write_list(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and _is_on(app):
        text = llms_txt(app.env, app.builder.out_suffix)  # type: ignore[attr-defined]
        (Path(app.outdir) / "llms.txt").write_text(text, encoding="utf-8")


def llms_txt(env: BuildEnvironment, suffix: str) -> str:
    """Return the list: the project, what it is, and a section of links for each branch of the table of contents."""
    root = env.config.root_doc
    lines = [f"# {escaped(env.config.project)}", "", f"> {escaped(noted(env, root))}"]
    alone = [page for page in _children(env, root) if not _children(env, page)]
    branches = [page for page in _children(env, root) if page not in alone]
    sections = [(_title(env, page), [page, *_below(env, page)]) for page in branches]
    if alone:
        sections.append(("More", alone))
    for title, pages in sections:
        lines += ["", f"## {title}", ""]
        lines += (_line(env, page, suffix) for page in pages)
    return "\n".join([*lines, ""])


def _line(env: BuildEnvironment, page: str, suffix: str) -> str:
    about = escaped(noted(env, page))
    return f"- [{_title(env, page)}]({page}{suffix}.md)" + (f": {about}" if about else "")


def _title(env: BuildEnvironment, page: str) -> str:
    return escaped(env.titles[page].astext() if page in env.titles else page)


def _children(env: BuildEnvironment, page: str) -> list[str]:
    """Return the pages that the tables of contents of a page list, in their order."""
    if page not in env.tocs:
        return []
    trees = env.tocs[page].findall(addnodes.toctree)
    return list(dict.fromkeys(name for tree in trees for name in tree["includefiles"]))


def _below(env: BuildEnvironment, page: str) -> Iterator[str]:
    for child in _children(env, page):
        yield child
        yield from _below(env, child)
