"""Calls that are in flight at once."""
