"""The warnings of the extension: each has a type, so that `suppress_warnings` can name it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from sphinx.util import logging

if TYPE_CHECKING:
    from sphinx.util.docutils import SphinxDirective, SphinxRole

logger = logging.getLogger(__name__)


class GradspecWarning(StrEnum):
    """The subtypes of `gradspec`; suppress one with `suppress_warnings = ["gradspec.broken"]`."""

    #: An option has a value that it cannot have; the build goes on with the default.
    CONFIG = "config"
    #: A record is missing, cannot be read, or has another schema version.
    RECORD = "record"
    #: A page names a function or a law that no record of this build holds, or a figure or a number that its record
    #: does not hold.
    UNKNOWN = "unknown"
    #: A law does not hold for a documented function.
    BROKEN = "broken"
    #: An example of a docstring prints something else than it says.
    EXAMPLE = "example"
    #: A default that words state is not the one of the signature.
    DEFAULT = "default"
    #: A difference from a published implementation that its record no longer shows, or that names a case that the
    #: spec does not have.
    DIFFERENCE = "difference"
    #: The record was made of an older source than the one that is documented.
    STALE = "stale"
    #: A function of the record has no page.
    UNDOCUMENTED = "undocumented"
    #: A documented object cannot be imported, or the code of a graph cannot be run.
    IMPORT = "import"
    #: A formula that KaTeX cannot read.
    MATH = "math"


def warn(kind: GradspecWarning, message: str, location: Any = None) -> None:
    """Warn about a page or a record.

    Args:
        kind: the subtype.
        message: what is wrong and what to do next.
        location: the page, as Sphinx takes it.
    """
    logger.warning(message, type="gradspec", subtype=kind.value, location=location)


def warn_each_build(page: SphinxDirective | SphinxRole, kind: GradspecWarning, message: str) -> None:
    """Warn at a directive or a role, in this build and in each one after it.

    Sphinx does not repeat the warnings of a page that it does not read again, so the page is read again.
    """
    warn(kind, message, page.get_location())
    page.env.note_reread()
