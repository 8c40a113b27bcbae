"""Random edits of the package, and what notices them: mutations, coverage, fuzzing."""
