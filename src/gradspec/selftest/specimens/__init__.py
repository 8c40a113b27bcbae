"""What is sound, and what is broken on purpose and named after its disease, of every kind of spec."""

from collections.abc import Sequence
from types import ModuleType

from gradspec.selftest.specimens import (
    compiled,
    diseased,
    elsewhere,
    further,
    graphed,
    hidden,
    honest,
    intruders,
    modules,
    modules_further,
    native,
    operators,
    parallel,
    registered_gradients,
    registered_kernels,
    registrations,
    sharded,
    text,
    text_further,
    unrecorded,
)
from gradspec.selftest.specimens.diseased import Disease, Specimens
from gradspec.selftest.specimens.honest import SCALE
from gradspec.selftest.specimens.mixed import MIXED
from gradspec.selftest.specimens.modules import NET
from gradspec.selftest.specimens.noisy import NOISY
from gradspec.selftest.specimens.selecting import SELECTING
from gradspec.selftest.specimens.sharded import SHARDED
from gradspec.selftest.specimens.stateful import STATEFUL
from gradspec.selftest.specimens.text import TAG

#: Sound specs of every kind: no law may break on them.
HONEST = (
    *honest.HONEST,
    *native.HONEST,
    *STATEFUL,
    *NOISY,
    *MIXED,
    *SELECTING,
    *SHARDED,
    *operators.HONEST,
    *registrations.HONEST,
    *modules.HONEST,
    *parallel.HONEST,
    *text.HONEST,
)
#: Where what is broken on purpose is entered.
_HOMES = (
    diseased,
    intruders,
    hidden,
    further,
    graphed,
    unrecorded,
    compiled,
    sharded,
    operators,
    registered_gradients,
    registered_kernels,
    elsewhere,
    modules,
    modules_further,
    parallel,
    text,
    text_further,
)


def _joined(homes: Sequence[ModuleType]) -> dict[str, Disease]:
    """Return the diseased of all files; a table that several files enter into is one table."""
    joined = Specimens()
    for table in {id(home.DISEASED): home.DISEASED for home in homes}.values():
        for name, disease in table.items():
            joined[name] = disease
    return dict(joined)


#: By name; each is named after its disease.
DISEASED = _joined(_HOMES)

__all__ = ["DISEASED", "HONEST", "NET", "SCALE", "TAG", "Disease"]
