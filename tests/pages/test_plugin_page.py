"""The page of the pytest plugin names every option of it, and no other."""

from __future__ import annotations

import re

import pytest

import gradspec_pytest
from pages.blocks import DOCS


def parser_of_the_plugin() -> pytest.Parser:
    """Return a parser that knows the options of the plugin, and no others."""
    parser = pytest.Parser(_ispytest=True)
    gradspec_pytest.pytest_addoption(parser)
    return parser


def test_a_default_of_the_page_and_of_the_help_is_that_of_the_option() -> None:
    options = [one for group in parser_of_the_plugin()._groups for one in group.options]
    text = (DOCS / "reference" / "plugin.md").read_text(encoding="utf-8")
    entries = re.finditer(r"^`(?P<name>--[\w-]+)[^`]*`\n(?P<words>:.*(?:\n  .*)*)", text, flags=re.MULTILINE)
    said = [
        (f"docs/reference/plugin.md:{text.count(chr(10), 0, entry.start()) + 1}", entry["name"], default)
        for entry in entries
        for default in re.findall(r"Default: `([^`]*)`", entry["words"])
    ]
    assert said, "the page states no default: does it write them in another way?"
    helps = [(one.names()[0], re.findall(r"\(default: ([^)]*)\)", str(one.attrs().get("help")))) for one in options]
    said += [("src/gradspec_pytest/_options.py", name, default) for name, found in helps for default in found]
    truth = {name: one.attrs().get("default") for one in options for name in one.names()}
    for where, name, default in said:
        assert default == truth[name], f"{where}: the default of {name} is {truth[name]!r}, and not {default!r}"


def test_the_page_names_every_option() -> None:
    parser = parser_of_the_plugin()
    options = {option for group in parser._groups for one in group.options for option in one.names()}
    page = (DOCS / "reference" / "plugin.md").read_text(encoding="utf-8")
    named = re.findall(r"^`([\w-]+)[^`]*`$", page, flags=re.MULTILINE)
    assert set(named) == options | set(parser._inidict)
