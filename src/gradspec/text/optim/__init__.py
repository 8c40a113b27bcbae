"""Optimizers: they write new texts for the parameters, from the feedback in their `.grad`; and the loop around them."""

from gradspec.text.optim._gain import Gain, examples_needed
from gradspec.text.optim._optimize import optimize
from gradspec.text.optim._plan import Load, Plan
from gradspec.text.optim._report import Optimized, Score, Step
from gradspec.text.optim._tgd import TextualGradientDescent

__all__ = [
    "Gain",
    "Load",
    "Optimized",
    "Plan",
    "Score",
    "Step",
    "TextualGradientDescent",
    "examples_needed",
    "optimize",
]
