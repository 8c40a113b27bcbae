"""Specimens of every kind of spec: sound ones, and broken ones that are named after their disease."""

from collections.abc import Sequence
from types import ModuleType

from gradspec_lab.specimens import (
    compiled,
    diseased,
    elsewhere,
    further,
    graphed,
    hidden,
    honest,
    intruders,
    left_behind,
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
from gradspec_lab.specimens.diseased import Disease, Specimens
from gradspec_lab.specimens.honest import SCALE
from gradspec_lab.specimens.mixed import MIXED
from gradspec_lab.specimens.modules import NET
from gradspec_lab.specimens.noisy import NOISY
from gradspec_lab.specimens.selecting import SELECTING
from gradspec_lab.specimens.sharded import SHARDED
from gradspec_lab.specimens.stateful import STATEFUL
from gradspec_lab.specimens.text import TAG

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
    left_behind,
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


def breaking(law: str) -> tuple[str, ...]:
    """Return the names of the diseased that a law must catch."""
    return tuple(name for name, disease in DISEASED.items() if law in disease.caught_by)


__all__ = ["DISEASED", "HONEST", "NET", "SCALE", "TAG", "Disease", "breaking"]
