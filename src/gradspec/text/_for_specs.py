"""Variables and a backward pass for the specs of text Functions."""

from __future__ import annotations

from gradspec.spec._text import TextEngine, hand_over
from gradspec.text._graph._backward import backward
from gradspec.text._graph._variable import Variable

hand_over(TextEngine(Variable=Variable, backward=backward))
