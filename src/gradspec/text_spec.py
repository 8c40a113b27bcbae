"""Specs of operations on text, under the path that they had before `gradspec.spec` held every spec."""

from gradspec.spec import Argument, TextCase, TextMaker, TextSpec

# In the order of the page that documents them.
__all__ = ["Argument", "TextMaker", "TextCase", "TextSpec"]  # noqa: RUF022
