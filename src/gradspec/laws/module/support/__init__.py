"""Shared parts of the laws of modules."""
