"""What LaTeX has to be told to print a page: the signs of verdicts, which its own fonts lack."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config

#: The signs that neither LaTeX nor Sphinx sets in its own way. XeLaTeX and LuaLaTeX take them from their font.
SIGNS = {"✗": r"\times", "∅": r"\emptyset", "△": r"\triangle", "○": r"\circ", "⊘": r"\oslash"}


def setup(app: Sphinx) -> None:
    """Put the signs before the preamble of the project."""
    app.connect("config-inited", _declare)


def _declare(app: Sphinx, config: Config) -> None:
    lines = [rf"\DeclareUnicodeCharacter{{{ord(sign):04X}}}{{\ensuremath{{{tex}}}}}" for sign, tex in SIGNS.items()]
    declared = "\n".join([r"\ifdefined\DeclareUnicodeCharacter", *lines, r"\fi", ""])
    config.latex_elements = {**config.latex_elements, "preamble": declared + config.latex_elements.get("preamble", "")}
