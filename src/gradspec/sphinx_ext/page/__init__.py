"""The sections of a page, from verdicts and sheets to docutils nodes."""
