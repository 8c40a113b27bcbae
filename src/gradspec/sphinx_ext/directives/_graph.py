"""The directive `gradspec-graph`: the graph of a text, drawn while the site is built, with no network and no script."""

from __future__ import annotations

import textwrap
from html import escape
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from gradspec.sphinx_ext._warnings import GradspecWarning, warn_each_build
from gradspec.sphinx_ext.directives._graph_svg import svg
from gradspec.sphinx_ext.page._nodes import code
from gradspec.text import mermaid, tree
from gradspec.text._graph._picture import graph


class GraphDirective(SphinxDirective):
    """Run the Python in the content, and draw the graph of the Variable that the argument names.

    The picture is followed by the same graph as a tree of lines, which is also what a screen reader gets, and by
    Mermaid's text for it, folded away.
    """

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the code, the picture, the tree and the flowchart."""
        source = textwrap.dedent("\n".join(self.content))
        names: dict[str, Any] = {"__name__": "gradspec_graph"}
        try:
            exec(compile(source, self.env.docname, "exec"), names)
            variable = eval(self.arguments[0], names)
            lines, flowchart, (boxes, arrows) = tree(variable), mermaid(variable), graph(variable)
        except (Exception, SystemExit) as error:  # it is the page's own code, which may raise anything
            message = f"the graph of {self.arguments[0]} cannot be drawn: {type(error).__name__}: {error}"
            warn_each_build(self, GradspecWarning.IMPORT, message)
            return [code(source, "python")]
        labels = {box.name: box.label for box in boxes}
        folded = f"<details><summary>As Mermaid</summary><pre>{escape(flowchart)}</pre></details>"
        return [
            code(source, "python"),
            nodes.raw("", svg(labels, arrows, f"The graph of {self.arguments[0]}: {lines}"), format="html"),
            code(lines, "text"),
            nodes.raw("", folded, format="html"),
        ]
