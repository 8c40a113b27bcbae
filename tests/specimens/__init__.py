"""Functions that are sound, and functions broken on purpose, each named after its disease."""

from specimens.diseased import DISEASED, Disease
from specimens.honest import HONEST as PLAIN
from specimens.honest import SCALE
from specimens.stateful import STATEFUL

#: Sound functions: no law may break on them.
HONEST = (*PLAIN, *STATEFUL)

__all__ = ["DISEASED", "HONEST", "SCALE", "Disease"]
