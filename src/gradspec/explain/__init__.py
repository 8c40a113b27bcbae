"""Explain a violation by experiments on the function itself; report only what an experiment showed."""

from gradspec.explain._by_differences import ELEMENTS, by_differences, line_by_differences
from gradspec.explain._cut import cut_by, gradient_of, is_cut_by_name, is_stopped, unseen_by_autograd
from gradspec.explain._cut_within import stopped_at
from gradspec.explain._follows import Explained, beside_others
from gradspec.explain._instead import instead_of
from gradspec.explain._misplaced import misplaced
from gradspec.explain._noise import beside_noise, is_of_noise
from gradspec.explain._not_derivative import holds_twice, why_not_derivative
from gradspec.explain._reasons import are_asked, with_reason, without_reasons
from gradspec.explain._wrong import MENDED

__all__ = [
    "ELEMENTS",
    "MENDED",
    "Explained",
    "are_asked",
    "beside_noise",
    "beside_others",
    "by_differences",
    "cut_by",
    "gradient_of",
    "holds_twice",
    "instead_of",
    "is_cut_by_name",
    "is_of_noise",
    "is_stopped",
    "line_by_differences",
    "misplaced",
    "stopped_at",
    "unseen_by_autograd",
    "why_not_derivative",
    "with_reason",
    "without_reasons",
]
