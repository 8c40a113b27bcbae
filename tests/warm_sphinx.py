"""Imports what a build imports in any case, torch not among it: Sphinx finds its own extensions by name, one by one."""

import importlib

from sphinx.application import builtin_extensions

OTHERS = (
    "gradspec.sphinx_ext._setup",
    "jinja2.ext",
    "myst_parser.mdit_to_docutils.sphinx_",
    "myst_parser.sphinx_ext.main",
    "py_mini_racer",
    "sphinx.cmd.build",
    "sphinx.ext.autosummary.generate",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx.util.requests",
    "warm_sources",
)
for name in (*builtin_extensions, *OTHERS):
    importlib.import_module(name)
