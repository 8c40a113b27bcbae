"""The script that made the record."""

SEEDS = 2
