"""A report as an outcome: text to read, or an exception of that text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from gradspec.law import Verdict


class CheckError(AssertionError):
    """A check has found something; its text is a line of the first finding, and what `gradspec check` prints of all."""

    __module__ = "gradspec"


class Outcome:
    """A result that has failures and can raise them."""

    @property
    def failures(self) -> tuple[Verdict, ...]:
        """The verdicts that make the run fail, by what its profile and its specs ask about."""
        raise NotImplementedError

    def __str__(self) -> str:
        """Return what `gradspec check` prints, without colour."""
        from gradspec.render._plain import plain

        return plain(cast("Any", self))

    def check(self) -> None:
        """Raise if the run fails.

        Raises:
            CheckError: with the findings as its text.
        """
        from gradspec.render._plain import for_an_exception

        if self.failures:
            raise CheckError(for_an_exception(cast("Any", self)))
