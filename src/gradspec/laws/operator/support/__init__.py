"""Shared parts of the laws of operators."""
