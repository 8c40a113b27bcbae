"""Shared parts of the laws of text Functions."""
