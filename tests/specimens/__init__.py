"""What is sound, and what is broken on purpose and named after its disease: functions and modules."""

from specimens import diseased, honest, intruders, modules
from specimens.diseased import Disease
from specimens.honest import SCALE
from specimens.mixed import MIXED
from specimens.modules import NET
from specimens.noisy import NOISY
from specimens.stateful import STATEFUL

#: Sound functions and modules: no law may break on them.
HONEST = (*honest.HONEST, *STATEFUL, *NOISY, *MIXED, *modules.HONEST)
DISEASED = {**diseased.DISEASED, **intruders.DISEASED, **modules.DISEASED}

__all__ = ["DISEASED", "HONEST", "NET", "SCALE", "Disease"]
