"""Records: what a measurement depends on, where it was made, and the one form in which it is kept."""

from gradspec._record._cells import Cell, cell_key, laws_behind, reusable, stale_names, stands_on
from gradspec._record._experiment import (
    experiment_sources,
    experiment_text,
    read_experiment,
    update_experiment,
    write_experiment,
)
from gradspec._record._file import SCHEMA, RecordError, from_text, only_writer, read, to_text, write
from gradspec._record._later import SourcesLater
from gradspec._record._provenance import provenance, same_environment
from gradspec._record._reach import Reach
from gradspec._record._roots import home_of, root_of
from gradspec._record._source import Source, reach_from, tree_of
from gradspec._record._unchanged import is_unchanged, state_of
from gradspec._record._where import Where, where_is

__all__ = [
    "SCHEMA",
    "Cell",
    "Reach",
    "RecordError",
    "Source",
    "SourcesLater",
    "Where",
    "cell_key",
    "experiment_sources",
    "experiment_text",
    "from_text",
    "home_of",
    "is_unchanged",
    "laws_behind",
    "only_writer",
    "provenance",
    "reach_from",
    "read",
    "read_experiment",
    "reusable",
    "root_of",
    "same_environment",
    "stale_names",
    "stands_on",
    "state_of",
    "to_text",
    "tree_of",
    "update_experiment",
    "where_is",
    "write",
    "write_experiment",
]
