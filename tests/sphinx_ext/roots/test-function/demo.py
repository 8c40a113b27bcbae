"""A function that scales gradients, without torch."""


class Scale:
    """Scale a gradient.

    Example:
        >>> Scale.apply(2.0, 3.0)
        2.0
    """

    @staticmethod
    def apply(x, f=1.0):
        """Return x."""
        return x


def scale(x, f):
    """Return x, and scale its gradient."""
    return Scale.apply(x, f)


class Net:
    """A network."""


def op(x):
    """Stand for an operator: what a page describes."""
    return x


class Words:
    """A text."""
