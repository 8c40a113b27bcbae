"""Imports what a build imports in any case, torch not among it, and builds a page: Sphinx finds its extensions by name.

A build compiles hundreds of regular expressions, the lexers and the templates of the theme; in a fork they are there.
Nothing of gradspec is in the page: KaTeX runs in threads, which no fork has.
"""

import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any

from jinja2 import Environment
from sphinx.application import builtin_extensions
from sphinx.cmd.build import build_main

OTHERS = (
    "gradspec.sphinx_ext._setup",
    "jinja2.ext",
    "myst_parser.mdit_to_docutils.sphinx_",
    "myst_parser.sphinx_ext.main",
    "py_mini_racer",
    "sphinx.ext.autosummary.generate",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx.util.requests",
    "warm_sources",
)
for name in (*builtin_extensions, *OTHERS):
    importlib.import_module(name)

CONF = """
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
html_theme = "basic"
"""
PAGE = """
A page
======

.. py:function:: named(x: int) -> int

   :param x: a number, *not* ``0``, of :py:func:`named`

.. list-table::

   * - a
     - b

>>> 1 + 1
2

.. code-block:: python

   print("a", 1.0)  # a comment

.. toctree::

   other
"""
OTHER = """# Another page

A **word**, `code` and [a link](index.rst).

| a | b |
|---|---|
| 1 | 2 |

```{code-block} python
x = "a"
```
"""

_compile = Environment.compile
_compiled: dict[tuple[Any, ...], Any] = {}


def _compile_once(self: Environment, source: Any, *words: Any, **named: Any) -> Any:
    key = (source, words, tuple(named.items()), tuple(self.extensions))
    if key not in _compiled:
        _compiled[key] = _compile(self, source, *words, **named)
    return _compiled[key]


#: Each builder makes an environment, and would compile the templates of a theme again.
Environment.compile = _compile_once  # type: ignore[method-assign,assignment]
with tempfile.TemporaryDirectory() as folder:
    for file, text in (("conf.py", CONF), ("index.rst", PAGE), ("other.md", OTHER)):
        Path(folder, file).write_text(text, encoding="utf-8")
    if build_main(["-q", "-W", "-d", f"{folder}/doctrees", folder, f"{folder}/html"]):
        sys.exit("the page of warm_sphinx is not built")
