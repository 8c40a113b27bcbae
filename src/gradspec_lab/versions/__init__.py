"""Everything verified under another version of torch."""
