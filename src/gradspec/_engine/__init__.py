"""The engine: the only place where laws run."""
