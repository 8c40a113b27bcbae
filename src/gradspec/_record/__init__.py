"""Records: what a measurement depends on, where it was made, and the one form in which it is kept."""

from gradspec._record._cells import Cell, cell_key, cells_in, laws_behind, reusable, stale_names, stands_on, what_lacks
from gradspec._record._experiment import (
    experiment_sources,
    experiment_text,
    read_experiment,
    update_experiment,
    write_experiment,
)
from gradspec._record._file import SCHEMA, RecordError, followed, from_text, is_device, opened, read, to_text, write
from gradspec._record._files import file_of
from gradspec._record._packages import is_beneath, versions
from gradspec._record._provenance import provenance, same_environment
from gradspec._record._source import Source, SourcesLater, roots_of, shown_path
from gradspec._record._writers import only_writer, put_aside

__all__ = [
    "SCHEMA",
    "Cell",
    "RecordError",
    "Source",
    "SourcesLater",
    "cell_key",
    "cells_in",
    "experiment_sources",
    "experiment_text",
    "file_of",
    "followed",
    "from_text",
    "is_beneath",
    "is_device",
    "laws_behind",
    "only_writer",
    "opened",
    "provenance",
    "put_aside",
    "read",
    "read_experiment",
    "reusable",
    "roots_of",
    "same_environment",
    "shown_path",
    "stale_names",
    "stands_on",
    "to_text",
    "update_experiment",
    "versions",
    "what_lacks",
    "write",
    "write_experiment",
]
