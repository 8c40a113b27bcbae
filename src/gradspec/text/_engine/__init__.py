"""The backward pass through a graph."""
