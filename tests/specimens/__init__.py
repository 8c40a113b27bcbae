"""Functions that are sound, and functions broken on purpose, each named after its disease."""

from specimens.diseased import DISEASED, Disease
from specimens.honest import HONEST, SCALE

__all__ = ["DISEASED", "HONEST", "SCALE", "Disease"]
