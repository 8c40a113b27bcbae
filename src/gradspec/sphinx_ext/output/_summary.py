"""The description of a page: its first words, for search engines, for links from elsewhere and for `llms.txt`."""

from __future__ import annotations

import re
from html import escape, unescape
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx import addnodes
from sphinx.util import docname_join

from gradspec.sphinx_ext._config import options
from gradspec.sphinx_ext.output._site import is_site

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

#: Where the environment keeps the description of a page; Sphinx purges and merges it with the page's metadata.
KEY = "gradspec_summary"
#: A result of a search shows about so many characters.
LONGEST = 200

_LATER = re.compile("\0(doc|ref) ([^\0]*)\0")


def setup(app: Sphinx) -> None:
    """Note the first words of each page when it is read, and put them in its head when it is written."""
    app.connect("doctree-read", _note, priority=600)  # after the collector of metadata, which starts again
    app.connect("html-page-context", _describe)


def summary_of(doctree: nodes.document) -> str:
    """Return the first paragraph of a page that is prose; empty if it has none."""
    for paragraph in doctree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section | nodes.document | nodes.container) or _is_described(paragraph):
            text = " ".join(_words(paragraph).split())
            if len(text) > 20:
                return text
    return ""


def shortened(text: str) -> str:
    """Return the sentences of a text that fit, or else the words, with three dots."""
    if len(text) <= LONGEST:
        return text
    sentences = text[: LONGEST + 1].rpartition(". ")[0]
    return f"{sentences}." if sentences else f"{text[: LONGEST - 1].rpartition(' ')[0]} ..."


def noted(env: BuildEnvironment, docname: str) -> str:
    """Return the description of a page that was read."""

    def title(match: re.Match[str]) -> str:
        if match[1] == "doc":
            return env.titles[match[2]].astext() if match[2] in env.titles else match[2]
        return env.domains.standard_domain.labels.get(match[2], ("", "", match[2]))[2]

    return shortened(_LATER.sub(title, str(env.metadata.get(docname, {}).get(KEY, ""))))


def _words(node: nodes.Node) -> str:
    """Return the text of a node; the title of another page, which may not have been read yet, is left for later."""
    if isinstance(node, addnodes.pending_xref) and not node.get("refexplicit"):
        if node["reftype"] == "doc":
            return f"\0doc {docname_join(node['refdoc'], node['reftarget'])}\0"
        if node["reftype"] == "ref":
            return f"\0ref {node['reftarget']}\0"
    return "".join(map(_words, node.children)) if node.children else node.astext()


def _is_described(paragraph: nodes.paragraph) -> bool:
    parent = paragraph.parent
    return isinstance(parent, nodes.Element) and parent.tagname == "desc_content"


def _note(app: Sphinx, doctree: nodes.document) -> None:
    app.env.metadata[app.env.current_document.docname][KEY] = summary_of(doctree)


def _describe(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    if not (options(app.config).descriptions and is_site(app.builder)) or any(
        node.get("name") == "description" for node in (doctree.findall(nodes.meta) if doctree else ())
    ):
        return
    text = noted(app.env, pagename)
    if not text:
        title = unescape(re.sub(r"<[^>]*>", "", str(context.get("title", pagename))))
        text = f"{title}, of the documentation of {app.config.project}."
    context["metatags"] = f'{context.get("metatags", "")}\n<meta name="description" content="{escape(text)}" />'
