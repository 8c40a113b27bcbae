"""Unknown code, called in a child process where there can be one: whatever it does there, this process is as before."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from torch import AcceleratorError

from gradspec._engine._child import Child, available
from gradspec._engine._lost import lost
from gradspec.law import Finding
from gradspec.laws import learn, preserved_process_state, untold
from gradspec.profile import Profile

Answer = TypeVar("Answer")


def apart(run: Callable[[], Answer], profile: Profile, seed: int) -> Answer | Finding:
    """Return what a call of unknown code gives; the finding that it ended its process, where it did.

    The limit of the profile is on each call.
    """

    def alone(_: None) -> tuple[Answer, list[bytes]]:
        with preserved_process_state(profile.device, seed):
            return run(), untold()

    if not available(profile.device):
        try:
            return alone(None)[0]
        except AcceleratorError as error:
            return lost(str(error).partition("\n")[0])
    with Child(alone, time_limit=profile.time_limit, per_call=True) as child:
        answer = child.ask(None)
    if isinstance(answer, Finding):
        return answer
    learn(answer[1])
    return answer[0]
