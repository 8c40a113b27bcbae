"""Specs of text Functions: frozen data, which needs no torch.

`gradspec.spec` has the same objects; both paths stay.
"""

from gradspec.spec import TextCase, TextMaker, TextSpec

__all__ = ["TextMaker", "TextCase", "TextSpec"]
