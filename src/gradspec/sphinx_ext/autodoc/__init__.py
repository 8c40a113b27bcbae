"""Handlers for the pages that autodoc makes."""
