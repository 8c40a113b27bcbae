"""Reads our own modules when it is imported, torch not among what it needs: keys are computed of them in every fork.

A process reads a file once, for as long as it is as it was.
"""

from gradspec._record import Source

#: What the keys of most specs and laws reach.
Source.of("gradspec")
