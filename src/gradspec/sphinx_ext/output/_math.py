"""Mathematics without scripts: KaTeX runs in V8 while the page is written, and the page carries HTML and MathML."""

from __future__ import annotations

import atexit
import os
import re
from functools import lru_cache
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.errors import ConfigError
from sphinx.util.math import get_node_equation_number

from gradspec.sphinx_ext._warnings import GradspecWarning, warn
from gradspec.sphinx_ext.output._site import is_site

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.builders import Builder
    from sphinx.config import Config
    from sphinx.writers.html5 import HTML5Translator

#: What `html_math_renderer` says to use it.
NAME = "gradspec_katex"
SCRIPT = Path(__file__).parents[1] / "static" / "katex" / "katex.min.js"

#: Words in a formula, an escaped character, and what opens and closes a group.
_TEXT = r"\text{"
_TOKEN = re.compile(r"(\\text\{[^{}]*\}|\\.|[{}])")

#: One engine a process, by process id: threads of V8 do not survive a fork, and pages may be written in parallel.
_engines: dict[int, Any] = {}


class TexError(ValueError):
    """A formula that KaTeX cannot read; the message is one line."""


@lru_cache(maxsize=4096)
def render(tex: str, *, display: bool, output: str = "htmlAndMathml") -> str:
    """Return a formula as HTML with MathML inside.

    Args:
        tex: the formula.
        display: whether it is in a line of its own.
        output: what KaTeX makes of it: "mathml" makes only that, which needs no style sheet and no font.

    Raises:
        TexError: KaTeX cannot read it.
    """
    from py_mini_racer import JSEvalException

    settings = {"displayMode": display, "throwOnError": True, "strict": "ignore", "trust": False, "output": output}
    try:
        return str(_engine().call("katex.renderToString", tex if display else _breakable(tex), settings))
    except JSEvalException as error:
        text = str(error).splitlines()[0]
        raise TexError(text.rpartition("KaTeX parse error: ")[2]) from None


def _breakable(tex: str) -> str:
    r"""Let a line break between the words of `\text{...}`, which KaTeX sets in a box that nothing breaks."""
    depth, made = 0, []
    for token in _TOKEN.split(tex):
        depth += {"{": 1, "}": -1}.get(token, 0)
        if depth == 0 and token.startswith(_TEXT):
            words = re.findall(r"\s*\S+\s*|\s+", token.removeprefix(_TEXT)[:-1])
            token = r"\allowbreak ".join(f"{_TEXT}{word}}}" for word in words)
        made.append(token)
    return "".join(made)


def tex_of(node: nodes.Element) -> tuple[str, bool]:
    """Return the TeX of a node, and whether it is displayed; rows and blank lines are aligned, as Sphinx does."""
    tex = node.astext().strip()
    if not isinstance(node, nodes.math_block):
        return tex, False
    if node.get("no-wrap", node.get("nowrap", False)):
        return tex, True
    rows = [part.strip() for part in tex.split("\n\n") if part.strip()]
    if len(rows) > 1 or (r"\\" in tex and r"\begin" not in tex):
        tex = r"\begin{aligned}" + r" \\ ".join(rows) + r"\end{aligned}"
    return tex, True


def setup(app: Sphinx) -> None:
    """Register the renderer where `html_math_renderer = "gradspec_katex"` chooses it."""
    app.connect("config-inited", _register)
    app.connect("doctree-read", _reread_bad_formulas)


def _register(app: Sphinx, config: Config) -> None:
    # Registered but not chosen, it would take the place of MathJax unasked, or beside a third one end the build:
    # Sphinx prefers whatever is not MathJax, and cannot choose among more.
    if config.html_math_renderer == NAME:
        if find_spec("py_mini_racer") is None:
            raise ConfigError(
                f"html_math_renderer = {NAME!r} needs mini-racer: pip install mini-racer, or leave it out"
            )
        app.add_html_math_renderer(NAME, inline_renderers=(_visit, None), block_renderers=(_visit, None))


def is_used(app: Sphinx) -> bool:
    """Whether this build renders its mathematics here."""
    return app.builder.format == "html" and getattr(app.builder, "math_renderer_name", None) == NAME


def _as_in(builder: Builder) -> dict[str, str]:
    """Return how a build shows a formula: an EPUB has MathML alone, for Sphinx packs no font of KaTeX."""
    return {} if is_site(builder) else {"output": "mathml"}


def _engine() -> Any:
    if (engine := _engines.get(os.getpid())) is None:
        from py_mini_racer import MiniRacer

        engine = _engines[os.getpid()] = MiniRacer()
        # Left to the end of the interpreter, V8 may wait for a thread of Python that runs no more.
        atexit.register(engine.close)
        engine.eval(SCRIPT.read_text(encoding="utf-8"))
    return engine


def _visit(translator: HTML5Translator, node: nodes.Element) -> None:
    tex, display = tex_of(node)
    tag = "div" if display else "span"
    try:
        html = render(tex, display=display, **_as_in(translator.builder))
    except TexError as error:
        warn(GradspecWarning.MATH, f"KaTeX cannot read the formula {tex!r}: {error}", node)
        html = f'<code class="gradspec-tex-error">{escape(tex)}</code>'
    translator.body.append(translator.starttag(node, tag, "", CLASS="math notranslate nohighlight"))
    if display and node.get("number"):
        translator.body.append(f'<span class="eqno">({get_node_equation_number(translator, node)})')  # type: ignore[arg-type]
        translator.add_permalink_ref(node, "Link to this equation")
        translator.body.append("</span>")
    translator.body.append(f"{html}</{tag}>")
    raise nodes.SkipNode


def _reread_bad_formulas(app: Sphinx, doctree: nodes.document) -> None:
    # The warning comes when the page is written; a page that is not read again is not written again.
    if not is_used(app):
        return
    for node in doctree.findall(lambda n: isinstance(n, nodes.math | nodes.math_block)):
        assert isinstance(node, nodes.Element)
        tex, display = tex_of(node)
        try:
            render(tex, display=display, **_as_in(app.builder))
        except TexError:
            app.env.note_reread()
            return
