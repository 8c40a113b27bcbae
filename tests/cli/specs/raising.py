"""A spec whose case generator raises after its first case."""

from dataclasses import replace

from tiny import HONEST as _HONEST
from tiny import cases


def _raising(make):
    yield from cases(make)
    raise KeyError("no such table")


RAISING = replace(_HONEST, name="raising", cases=_raising)
del _HONEST
