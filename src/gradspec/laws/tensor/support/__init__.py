"""Shared parts of the laws of functions on tensors."""
