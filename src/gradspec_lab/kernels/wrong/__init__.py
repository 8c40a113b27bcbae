"""Kernels that are wrong on purpose, in pairs with sound twins."""

from gradspec_lab.kernels.wrong import _attention, _norms, _softmax, _sums
from gradspec_lab.kernels.wrong._pair import Occasion, Pair

PAIRS: dict[str, Pair] = {pair.name: pair for room in (_norms, _softmax, _attention, _sums) for pair in room.PAIRS}

__all__ = ["PAIRS", "Occasion", "Pair"]
