"""Audits of published functions, and what is true of these."""
