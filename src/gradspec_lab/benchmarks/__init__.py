"""Benchmarks against published and hand-written code."""
