"""A package of somebody else's."""
