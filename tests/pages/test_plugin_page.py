"""The page of the pytest plugin names every option of it, and no other."""

from __future__ import annotations

import re

import pytest

import gradspec_pytest
from pages.blocks import DOCS


def test_the_page_names_every_option() -> None:
    parser = pytest.Parser(_ispytest=True)
    gradspec_pytest.pytest_addoption(parser)
    options = {option for group in parser._groups for one in group.options for option in one.names()}
    page = (DOCS / "reference" / "plugin.md").read_text(encoding="utf-8")
    named = re.findall(r"^`([\w-]+)[^`]*`$", page, flags=re.MULTILINE)
    assert set(named) == options | set(parser._inidict)
