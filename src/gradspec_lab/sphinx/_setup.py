"""The directives, the role and the style sheet that the laboratory adds to Sphinx."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.util.logging import getLogger

from gradspec import __version__
from gradspec._record import RecordError, write
from gradspec.sphinx_ext.domain import _domain
from gradspec_lab._summary import read_summary
from gradspec_lab.sphinx._benchmark import BenchmarkDirective
from gradspec_lab.sphinx._campaign import CampaignDirective
from gradspec_lab.sphinx._checkers import CheckersDirective
from gradspec_lab.sphinx._cuda import CudaDirective, CudaRole
from gradspec_lab.sphinx._curves import CurvesDirective
from gradspec_lab.sphinx._gallery import GalleryDirective
from gradspec_lab.sphinx._kill_matrix import KillMatrixDirective
from gradspec_lab.sphinx._map import MapDirective
from gradspec_lab.sphinx._number import NumberRole
from gradspec_lab.sphinx._package_specs import PackageSpecsDirective
from gradspec_lab.sphinx._peers import PeersDirective
from gradspec_lab.sphinx._versions import VersionsDirective

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.builders import Builder
    from sphinx.config import Config
    from sphinx.util.docutils import SphinxDirective, SphinxRole
    from sphinx.util.typing import ExtensionMetadata

logger = getLogger(__name__)

DIRECTIVES: Mapping[str, type[SphinxDirective]] = {
    "gradspec-benchmark": BenchmarkDirective,
    "gradspec-campaign": CampaignDirective,
    "gradspec-checkers": CheckersDirective,
    "gradspec-cuda": CudaDirective,
    "gradspec-curves": CurvesDirective,
    "gradspec-gallery": GalleryDirective,
    "gradspec-kill-matrix": KillMatrixDirective,
    "gradspec-map": MapDirective,
    "gradspec-package-specs": PackageSpecsDirective,
    "gradspec-peers": PeersDirective,
    "gradspec-versions": VersionsDirective,
}
#: Roles of the domain of the package that are no links.
ROLES: Mapping[str, type[SphinxRole]] = {"cuda": CudaRole, "number": NumberRole}
STYLE, FILTER = (Path(__file__).parent / "static" / name for name in ("plot.css", "filter.js"))


def setup_extension(app: Sphinx) -> ExtensionMetadata:
    """Register every part of the extension."""
    for name, directive in DIRECTIVES.items():
        app.add_directive(name, directive)
    for name, role in ROLES.items():
        app.add_role_to_domain(_domain.NAME, name, role())
    app.add_config_value("gradspec_summaries", [], "env", types=list)
    app.connect("config-inited", _expand)
    app.connect("builder-inited", _link)
    app.connect("write-started", _copy)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": __version__}


def _expand(app: Sphinx, config: Config) -> None:
    """Write each summary as the record that the package reads, if it has changed; without a summary, no record."""
    for pair in config.gradspec_summaries:
        summary, record = ((Path(app.confdir) / name).resolve() for name in pair.split(" -> "))
        if not summary.exists():
            record.unlink(missing_ok=True)
            continue
        try:
            text = read_summary(summary).to_json()
        except RecordError as error:
            logger.warning("%s", error, type="gradspec", subtype="record")
            continue
        if not record.exists() or record.read_text(encoding="utf-8") != text:
            write(text, record)


def _link(app: Sphinx) -> None:
    if app.builder.format == "html":
        app.add_css_file("gradspec/plot.css")
        app.connect("html-page-context", _filter)


def _filter(app: Sphinx, page: str, template: str, context: object, doctree: nodes.document | None) -> None:
    """Link the script of the filter, on a page that has one."""
    if doctree is not None and any("gradspec-filter" in node["classes"] for node in doctree.findall(nodes.container)):
        app.add_js_file("gradspec/filter.js", loading_method="defer")


def _copy(app: Sphinx, builder: Builder) -> None:
    if builder.format == "html":
        folder = Path(app.outdir) / "_static" / "gradspec"
        folder.mkdir(parents=True, exist_ok=True)
        for file in (STYLE, FILTER):
            shutil.copy2(file, folder)
