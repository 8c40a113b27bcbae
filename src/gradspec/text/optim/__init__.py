"""Optimizers: they write new texts for the parameters, from the feedback in their `.grad`."""

from gradspec.text.optim._tgd import TextualGradientDescent

__all__ = ["TextualGradientDescent"]
