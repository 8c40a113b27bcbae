"""What the extension adds to Sphinx, part by part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gradspec import __version__
from gradspec.sphinx_ext import (
    _assets,
    _autodoc,
    _collector,
    _config,
    _defaults,
    _domain,
    _inventories,
    _links,
    _llms,
    _math,
    _plot,
    _summary,
    _viewcode,
)
from gradspec.sphinx_ext._audit_directive import AuditDirective
from gradspec.sphinx_ext._benchmark_directive import BenchmarkDirective
from gradspec.sphinx_ext._graph_directive import GraphDirective
from gradspec.sphinx_ext._kill_matrix import KillMatrixDirective
from gradspec.sphinx_ext._law_directive import LawDirective
from gradspec.sphinx_ext._laws_directive import LawsDirective
from gradspec.sphinx_ext._map_directive import MapDirective
from gradspec.sphinx_ext._matrix_directive import MatrixDirective
from gradspec.sphinx_ext._pages import PAGES
from gradspec.sphinx_ext._peers_directive import PeersDirective
from gradspec.sphinx_ext._plot_directive import CurvesDirective
from gradspec.sphinx_ext._plot_number import NumberRole
from gradspec.sphinx_ext._spec_directive import SpecDirective

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.docutils import SphinxDirective, SphinxRole
    from sphinx.util.typing import ExtensionMetadata

DIRECTIVES: Mapping[str, type[SphinxDirective]] = {
    **{f"gradspec-{kind}": SpecDirective for kind in PAGES},
    "gradspec-audit": AuditDirective,
    "gradspec-benchmark": BenchmarkDirective,
    "gradspec-curves": CurvesDirective,
    "gradspec-graph": GraphDirective,
    "gradspec-kill-matrix": KillMatrixDirective,
    "gradspec-law": LawDirective,
    "gradspec-laws": LawsDirective,
    "gradspec-map": MapDirective,
    "gradspec-matrix": MatrixDirective,
    "gradspec-peers": PeersDirective,
}
#: Roles that are no links; the domain has those.
ROLES: Mapping[str, type[SphinxRole]] = {"number": NumberRole}

#: Moves when a pickled environment of the former form can no longer be read.
ENV_VERSION = 1


def setup_extension(app: Sphinx) -> ExtensionMetadata:
    """Register every part of the extension."""
    _collector.setup(app)  # before what takes memory
    _config.setup(app)
    _inventories.setup(app)
    _autodoc.setup(app)
    _defaults.setup(app)
    _domain.setup(app)
    _links.setup(app)
    _math.setup(app)
    _assets.setup(app)
    _plot.setup(app)
    _summary.setup(app)
    _llms.setup(app)
    _viewcode.setup(app)
    for name, directive in DIRECTIVES.items():
        app.add_directive(name, directive)
    for name, role in ROLES.items():
        app.add_role_to_domain(_domain.NAME, name, role())
    return {"env_version": ENV_VERSION, "parallel_read_safe": True, "parallel_write_safe": True, "version": __version__}
