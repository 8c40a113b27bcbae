"""The error of a spec that cannot be judged."""


class SpecFaultError(Exception):
    """The spec cannot be judged: its primal, surrogate or gradient raised, or it is of a form that no law takes."""
