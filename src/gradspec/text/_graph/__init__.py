"""Variables, Functions, and the graph that calls build."""
