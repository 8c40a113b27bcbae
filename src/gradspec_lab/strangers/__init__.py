"""Functions of others, verified and audited."""
