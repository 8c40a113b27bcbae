"""Is this a state that an optimizer can go on from? Said before anything of it is taken over."""

from __future__ import annotations

from typing import Any

NAMES = ("version", "prompts_version", "momentum", "constraints", "params", "past")


def check_state(state: Any, params: int) -> None:
    """Raise if a state is not one of an optimizer with so many parameters.

    Example:
        >>> check_state({"version": 2}, 1)
        Traceback (most recent call last):
        ...
        ValueError: the state has version 2; this optimizer reads version 1
    """
    if not isinstance(state, dict):
        raise TypeError(f"a state is a dict that state_dict returned, not a {type(state).__name__}")
    if state.get("version", 1) != 1:
        raise ValueError(f"the state has version {state['version']}; this optimizer reads version 1")
    for name in NAMES:
        if name not in state:
            raise ValueError(f"the state has no {name!r}; it is not one that state_dict returned")
    if not is_count(state["momentum"]):
        raise ValueError(f"the state's momentum is {state['momentum']!r}; it counts earlier texts: 0 or more")
    for name in ("constraints", "params"):
        if not _texts(state[name]):
            raise ValueError(f"the state's {name} are {state[name]!r}; they must be a list of texts")
    if len(state["params"]) != params:
        raise ValueError(f"the state has {len(state['params'])} parameters, the optimizer {params}")
    past = state["past"]
    if not isinstance(past, list) or len(past) != params:
        raise ValueError(f"the state's past is {past!r}; it must be a list for each of {params} parameters")
    for pairs in past:
        if not isinstance(pairs, list | tuple) or len(pairs) > state["momentum"]:
            raise ValueError(f"the state's past has {pairs!r} for a momentum of {state['momentum']}")
        if not all(_texts(pair) and len(pair) == 2 for pair in pairs):
            raise ValueError(f"the state's past has {pairs!r}; it must hold pairs of a text and its feedback")


def is_count(value: object) -> bool:
    """Return whether a value is an int, 0 or more; True is none."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
