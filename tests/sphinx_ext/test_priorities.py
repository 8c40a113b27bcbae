"""Sphinx and its extensions connect with the priorities that our docstrings say: ours are before or after these."""

from __future__ import annotations

import importlib
import inspect
import re

import pytest


@pytest.mark.parametrize(
    ("module", "event", "priority"),
    [
        ("sphinx.ext.intersphinx", "config-inited", 800),
        ("sphinx.ext.napoleon", "autodoc-process-docstring", 500),
        ("sphinx.ext.viewcode", "html-collect-pages", 500),
        ("sphinx_autodoc_typehints", "autodoc-process-signature", 500),
        ("sphinx_autodoc_typehints", "autodoc-process-docstring", 500),
        ("numpydoc.numpydoc", "autodoc-process-docstring", 500),
        ("gradspec.sphinx_ext.domain._domain", "builder-inited", 500),
    ],
)
def test_an_extension_connects_with_the_priority_that_we_say(module: str, event: str, priority: int) -> None:
    application = pytest.importorskip("sphinx.application")
    pytest.importorskip(module)
    setup = inspect.getsource(importlib.import_module(module).setup)
    (told,) = re.findall(rf"connect\(\s*[\"']{event}[\"'],\s*\w+(?:,\s*priority=(\d+))?,?\s*\)", setup)
    default = inspect.signature(application.Sphinx.connect).parameters["priority"].default
    assert (int(told) if told else default) == priority
