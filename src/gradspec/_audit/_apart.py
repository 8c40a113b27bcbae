"""Unknown code, called in a child process where there can be one: whatever it does there, this process is as before."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from gradspec._engine._child import Child, available
from gradspec.law import Finding
from gradspec.laws import preserved_process_state
from gradspec.profile import Profile

Answer = TypeVar("Answer")


def apart(run: Callable[[], Answer], profile: Profile, seed: int) -> Answer | Finding:
    """Return what a call of unknown code gives; the finding that it ended its process, where it did.

    The limit of the profile is on each call.
    """

    def alone(_: None) -> Answer:
        with preserved_process_state(profile.device, seed):
            return run()

    if not available(profile.device):
        return alone(None)
    with Child(alone, time_limit=profile.time_limit, per_call=True) as child:
        return child.ask(None)
