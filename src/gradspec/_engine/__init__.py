"""What runs laws: the only place where they run."""
