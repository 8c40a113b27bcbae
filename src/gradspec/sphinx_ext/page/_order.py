"""The order of a page: sections that its author writes beside a spec are shown among those of the spec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.transforms import SphinxTransform

from gradspec.sphinx_ext._config import options
from gradspec.sphinx_ext._warnings import GradspecWarning, warn
from gradspec.sphinx_ext.page._pages import AFTER, EXAMPLES, MEASURED, MEMBERS, SECTIONS

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config

#: The attribute of a section that a spec makes: its title.
OF_SPEC = "gradspec_section"
#: The titles of all of these, in the order of a page.
TITLES = tuple(dict.fromkeys(title for title, _ in (EXAMPLES, *SECTIONS.values(), *MEASURED, (MEMBERS, None), *AFTER)))


def setup(app: Sphinx) -> None:
    """Register the transform, and check what the configuration names."""
    app.add_transform(InReadingOrder)
    app.connect("config-inited", _check)


def _check(app: Sphinx, config: Config) -> None:
    for title, before in options(config).sections.items():
        if before not in TITLES:
            known = ", ".join(repr(title) for title in TITLES)
            said = f"gradspec_sections: {title!r} is put before {before!r}: a spec has the sections {known}"
            warn(GradspecWarning.CONFIG, said)


class InReadingOrder(SphinxTransform):
    """Move each section that `gradspec_sections` names to its place among the sections of the spec on its page."""

    #: Before what numbers sections or collects them.
    default_priority = 300

    def apply(self, **_: Any) -> None:
        """Move the sections of every page that shows one spec."""
        wanted = options(self.config).sections
        parents = {id(section.parent): section.parent for section in self.document.findall(_of_spec)}
        for parent in parents.values():
            for section in [node for node in parent.children if isinstance(node, nodes.section) and not _of_spec(node)]:
                if (before := wanted.get(section[0].astext())) in TITLES:
                    _move(parent, section, before)


def _of_spec(node: nodes.Node) -> bool:
    return isinstance(node, nodes.section) and OF_SPEC in node


def _move(parent: nodes.Element, section: nodes.section, before: str) -> None:
    """Put a section before that of a title, or before the next one that the page has; leave it if there is none."""
    later = TITLES[TITLES.index(before) :]
    followed = next((node for node in parent.children if _of_spec(node) and node[OF_SPEC] in later), None)  # type: ignore[index]
    if followed is not None:
        parent.remove(section)
        parent.insert(parent.index(followed), section)
