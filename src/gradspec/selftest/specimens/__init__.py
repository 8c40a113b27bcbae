"""What is sound, and what is broken on purpose and named after its disease, of every kind of spec."""

from gradspec.selftest.specimens import (
    compiled,
    diseased,
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
from gradspec.selftest.specimens.diseased import Disease
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
DISEASED = {
    **diseased.DISEASED,
    **intruders.DISEASED,
    **hidden.DISEASED,
    **further.DISEASED,
    **graphed.DISEASED,
    **unrecorded.DISEASED,
    **compiled.DISEASED,
    **sharded.DISEASED,
    **operators.DISEASED,
    **registered_gradients.DISEASED,
    **registered_kernels.DISEASED,
    **modules.DISEASED,
    **modules_further.DISEASED,
    **parallel.DISEASED,
    **text.DISEASED,
    **text_further.DISEASED,
}

__all__ = ["DISEASED", "HONEST", "NET", "SCALE", "TAG", "Disease"]
