"""Figures and maps of records, drawn as SVG."""
