"""The error of a spec that cannot be judged."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gradspec._ending import EndedError, endings_raise
from gradspec._one_line import one_line


class SpecFaultError(Exception):
    """The spec cannot be judged: its primal, surrogate or gradient raised, or it is of a form that no law takes."""


@contextmanager
def spec_faults(role: str, shown: Callable[[BaseException], str] = one_line) -> Iterator[None]:
    """Say of what is raised here, or would end the process, that it is the spec's.

    Args:
        role: what of the spec is called here, "primal".
        shown: writes an error in one line.

    Raises:
        SpecFaultError: something raised.
    """
    try:
        with endings_raise():
            yield
    except EndedError as error:
        raise SpecFaultError(f"the {role} of the spec ended the interpreter: {error}") from error
    except SpecFaultError:
        raise  # a call within a call says it once
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        if isinstance(error, KeyboardInterrupt) and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            raise  # the user's: a child does not get it
        raise SpecFaultError(f"the {role} of the spec raised {shown(error)}") from error
