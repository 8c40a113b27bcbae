"""A report as an outcome: text to read, or an exception of that text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from gradspec.law import Verdict


class CheckError(AssertionError):
    """A check has found something; its text is what `gradspec check` prints beneath its table."""

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
        from gradspec.render._plain import without_table

        if self.failures:
            raise CheckError(f"\n{without_table(cast('Any', self))}")
