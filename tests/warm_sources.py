"""Reads our own modules when it is imported, torch not among what it needs: keys are computed of them in every fork.

A process parses a module once, for as long as its file is as it was; that takes 0.7 seconds for all of ours.
"""

from gradspec._record import Source, reach_from

#: What the keys of most specs and laws reach.
Source.of(reach_from(), "gradspec.laws:LAWS", "gradspec._engine._verify", "gradspec.functions", "gradspec.nn")
