"""An interrupt ends a run wherever it comes."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from gradspec._engine._interrupts import interrupts


@pytest.fixture(autouse=True)
def heeded() -> Iterator[None]:
    """Heed interrupts, which a suite in the background ignores."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Finalized:
    """Is interrupted where Python drops what is raised."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_python_drops_is_raised_again() -> None:
    with interrupts() as again:
        Finalized()  # Python drops it
        with pytest.raises(KeyboardInterrupt):
            again()


def test_an_interrupt_is_raised_where_it_comes() -> None:
    with interrupts(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_what_handles_interrupts_is_as_it_was_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interrupts() as again:
        again()
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_who_ignores_interrupts_goes_on() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts() as again:
            signal.raise_signal(signal.SIGINT)
            again()
    finally:
        signal.signal(signal.SIGINT, before)
