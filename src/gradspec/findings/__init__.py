"""What a report found, cause by cause, and which of it makes a run fail."""

from gradspec.findings._findings import ORDER, Found, findings, rank_of, rank_words, use_of
from gradspec.findings._judgement import Judged, Judgement, judge

__all__ = ["ORDER", "Found", "Judged", "Judgement", "findings", "judge", "rank_of", "rank_words", "use_of"]
