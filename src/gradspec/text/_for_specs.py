"""What the specs of text Functions are given: Variables, and the pass that carries what is said of them back."""

from __future__ import annotations

from gradspec.spec._text import TextEngine, hand_over
from gradspec.text._graph._backward import backward
from gradspec.text._graph._variable import Variable

hand_over(TextEngine(Variable=Variable, backward=backward))
