"""Figures, maps and graphs as SVG."""
